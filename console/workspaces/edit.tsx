/** The dialogs that change a workspace and its budgets. */
import { useState } from 'preact/hooks';
import type { ApiWorkspace } from '../api.gen.ts';
import { api, type Body } from '../api.ts';
import { useChange } from '../query.ts';
import { useDifference } from '../ui/difference.ts';
import { Amount, Area, Check, Choice, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { linesOrNull, textOf } from '../ui/lines.ts';
import { RateFields, rateLimits, rateTexts } from '../ui/rate-limits.tsx';

export const INTERVALS = ['daily', 'weekly', 'monthly', 'lifetime'] as const;
export type Interval = (typeof INTERVALS)[number];
const SORTS: readonly Option[] = [
  ['', 'As configured'],
  ['price', 'Price'],
  ['throughput', 'Throughput'],
  ['latency', 'Latency'],
  ['exacto', 'Quality of tool calls'],
];

const CACHING: readonly Option[] = [
  ['', 'Account default'],
  ['off', 'Off'],
  ['translated', 'Where requests are translated'],
  ['always', 'Always'],
];

export function EditWorkspace({ workspace, onClose }: { workspace: ApiWorkspace; onClose(): void }) {
  const [name, setName] = useState(workspace.name);
  const [slug, setSlug] = useState(workspace.slug);
  const [description, setDescription] = useState(workspace.description ?? '');
  const [model, setModel] = useState(workspace.default_text_model ?? '');
  const [imageModel, setImageModel] = useState(workspace.default_image_model ?? '');
  const [caching, setCaching] = useState<string>(workspace.prompt_caching ?? '');
  const [tools, setTools] = useState(textOf(workspace.disabled_server_tools));
  const [rates, setRates] = useState(rateTexts(workspace.rate_limits));
  const [loggedKeys, setLoggedKeys] = useState(textOf(workspace.io_logging_api_key_ids));
  const [sort, setSort] = useState(workspace.default_provider_sort ?? '');
  const [logging, setLogging] = useState(workspace.is_observability_io_logging_enabled);
  const [rate, setRate] = useState(String(workspace.io_logging_sampling_rate));
  const [forwards, setForwards] = useState(workspace.is_observability_broadcast_enabled);
  const body = useDifference<Body<'PATCH /workspaces/{id}'>>({
    name,
    slug,
    description: description || null,
    default_text_model: model || null,
    default_image_model: imageModel || null,
    default_provider_sort: (sort || null) as 'price' | null,
    disabled_server_tools: linesOrNull(tools, workspace.disabled_server_tools),
    prompt_caching: (caching || null) as 'off' | null,
    rate_limits: rateLimits(rates),
    // A hash has more digits than a number.
    io_logging_api_key_ids:
      linesOrNull(loggedKeys, workspace.io_logging_api_key_ids)?.map((id) =>
        /^\d{1,15}$/.test(id) ? Number(id) : id,
      ) ?? null,
    is_observability_io_logging_enabled: logging,
    io_logging_sampling_rate: Number(rate),
    is_observability_broadcast_enabled: forwards,
  });
  const change = useChange(
    () => api('PATCH /workspaces/{id}', { path: { id: workspace.id }, body }),
    ['GET /workspaces', 'GET /workspaces/{id}'],
    onClose,
  );
  return (
    <Dialog title={`Edit ${workspace.name}`} wide onClose={onClose}>
      <Form submit="Save" change={change} onCancel={onClose}>
        <div class="form-row">
          <Text label="Name" member="name" required value={name} onInput={setName} />
          <Text
            label="Slug"
            member="slug"
            required
            value={slug}
            onInput={setSlug}
            code
            hint="Names the workspace in URLs"
          />
        </div>
        <Area label="Description" member="description" rows={2} value={description} onInput={setDescription} />
        <div class="form-row">
          <Text label="Default model" member="default_text_model" value={model} onInput={setModel} code />
          <Text
            label="Default image model"
            member="default_image_model"
            value={imageModel}
            onInput={setImageModel}
            code
          />
        </div>
        <div class="form-row">
          <Choice
            label="Order of endpoints"
            member="default_provider_sort"
            value={sort}
            options={SORTS}
            onChange={setSort}
          />
          <Choice
            label="Prompt caching"
            member="prompt_caching"
            value={caching}
            options={CACHING}
            onChange={setCaching}
          />
        </div>
        <RateFields texts={rates} onTexts={setRates} />
        <Area
          label="Disabled server tools, one a line"
          member="disabled_server_tools"
          code
          rows={2}
          value={tools}
          onInput={setTools}
          hint="Requests that name one, such as svc:web_search, are refused"
        />
        <Check label="Forward generations to the destinations" checked={forwards} onChange={setForwards} />
        <Check label="Keep prompts and answers (I/O logging)" checked={logging} onChange={setLogging} />
        {logging && (
          <div class="form-row">
            <Amount
              label="Share of requests to keep, 0 to 1"
              member="io_logging_sampling_rate"
              value={rate}
              onInput={setRate}
            />
            <Area
              label="Only for these keys, one number or hash a line"
              member="io_logging_api_key_ids"
              code
              rows={2}
              value={loggedKeys}
              onInput={setLoggedKeys}
              hint="Empty: all keys"
            />
          </div>
        )}
      </Form>
    </Dialog>
  );
}

interface EditBudgetProps {
  id: string;
  interval: Interval;
  /** USD; undefined: none. */
  limit: number | undefined;
  /** Of all budgets of the workspace. */
  byok: boolean;
  onClose(): void;
}

export function EditBudget({ id, interval, limit: before, byok: counts, onClose }: EditBudgetProps) {
  const [limit, setLimit] = useState(String(before ?? ''));
  const [byok, setByok] = useState(counts);
  const path = { workspace_ref: id, interval };
  const change = useChange(
    async () => {
      if (limit === '') await api('DELETE /workspaces/{workspace_ref}/budgets/{interval}', { path });
      else
        await api('PUT /workspaces/{workspace_ref}/budgets/{interval}', {
          path,
          // It counts for all budgets, so another administrator may have changed it at another one.
          body: { limit_usd: Number(limit), ...(byok !== counts && { include_byok_in_budgets: byok }) },
        });
    },
    ['GET /workspaces/{workspace_ref}/budgets'],
    onClose,
  );
  return (
    <Dialog title={`The ${interval} budget`} onClose={onClose}>
      <Form submit="Save" change={change} onCancel={onClose}>
        <Amount
          label="Limit in USD"
          member="limit_usd"
          value={limit}
          onInput={setLimit}
          hint="Requests beyond it are refused with 402. Empty: no limit."
        />
        {limit !== '' && (
          <Check
            label="All budgets of the workspace also count spend on BYOK credentials"
            checked={byok}
            onChange={setByok}
          />
        )}
      </Form>
    </Dialog>
  );
}

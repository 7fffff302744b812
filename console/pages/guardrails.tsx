/** Guardrails: what they allow and filter, whom they apply to, and a box to test a text. */
import { useState } from 'preact/hooks';
import type { ApiBuiltinFilterInput, ApiGuardrail, ApiPatternFilterInput } from '../api.gen.ts';
import { api, type Body } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { KeyAssignments, MemberAssignments } from '../guardrails/assignments.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Empty, Facts, Page, Problem, type Tone, Waiting } from '../ui/basics.tsx';
import { usd } from '../ui/format.ts';
import { Area, Check, Choice, Confirm, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';
import { RESETS } from './keys.tsx';

const PAGE = 50;
const BUILTINS: readonly Option[] = [
  ['email', 'E-mail addresses'],
  ['phone', 'Phone numbers'],
  ['ssn', 'Social security numbers'],
  ['credit-card', 'Credit card numbers'],
  ['ip-address', 'IP addresses'],
  ['secrets', 'Secrets and keys'],
  ['regex-prompt-injection', 'Prompt injections'],
  ['person-name', 'Personal names'],
  ['address', 'Postal addresses'],
];
const ACTIONS: readonly Option[] = [
  ['', 'Ignore'],
  ['flag', 'Flag'],
  ['redact', 'Redact'],
  ['block', 'Block'],
];
const KEPT_ACTION: Option = ['', 'As before; block new ones'];
const ACTION_TONES: Readonly<Record<string, Tone>> = { block: 'bad', redact: 'warn', flag: 'info' };

export function Guardrails({ rest }: PageParts) {
  return rest === '' ? <GuardrailTable /> : <GuardrailDetail key={rest} id={rest} />;
}

function GuardrailTable() {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = params.get('workspace') ?? '';
  const reading = useApi('GET /guardrails', {
    query: { offset, limit: PAGE, ...inWorkspace(workspace) },
  });
  return (
    <Page
      title="Guardrails"
      about="What keys and members may ask, and which texts are flagged, redacted or blocked."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'guardrail' })}>
          Create a guardrail
        </Button>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
      </search>
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        empty={
          <Empty icon="guardrails" title="No guardrails">
            <p>Create one to limit models and spend, or to block texts, and assign it to keys and members.</p>
          </Empty>
        }
        pages={{ size: PAGE, total: reading.data?.total_count }}
        label="Guardrails"
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/guardrails/${id}`)}
        columns={[
          { head: 'Name', cell: (each) => <span class="clip">{each.name}</span> },
          { head: 'Filters', cell: (each) => <FilterBadges item={each} /> },
          {
            head: 'Models',
            minor: true,
            cell: (each) =>
              each.allowed_models === null ? <span class="soft">all</span> : `${each.allowed_models.length} allowed`,
          },
          {
            head: 'Limit',
            end: true,
            cell: (each) =>
              each.limit_usd === null ? (
                <span class="soft">none</span>
              ) : (
                `${usd(each.limit_usd)} ${each.reset_interval ?? ''}`
              ),
          },
        ]}
      />
      {params.get('new') === 'guardrail' && (
        <EditGuardrail workspace={workspace} onClose={() => set({ new: undefined }, true)} />
      )}
    </Page>
  );
}

function filtersOf({ content_filter_builtins, content_filters }: ApiGuardrail) {
  const builtins = (content_filter_builtins ?? []).map(({ slug, action }) => ({ name: slug, action }));
  return [...builtins, ...(content_filters ?? []).map(({ pattern, action }) => ({ name: pattern, action }))];
}

function FilterBadges({ item }: { item: ApiGuardrail }) {
  const filters = filtersOf(item);
  if (filters.length === 0) return <span class="soft">none</span>;
  return (
    <span class="badges">
      {filters.map(({ name, action }) => (
        <Badge key={name} tone={ACTION_TONES[action] ?? 'plain'}>
          {action} {name}
        </Badge>
      ))}
    </span>
  );
}

interface EditGuardrailProps {
  guardrail?: ApiGuardrail;
  workspace?: string;
  onClose(): void;
}

const linesOf = (text: string) =>
  text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean);
const listOrNull = (text: string) => (linesOf(text).length === 0 ? null : linesOf(text));

function EditGuardrail({ guardrail, workspace = '', onClose }: EditGuardrailProps) {
  // What the interface returns is what it accepts, in words that its description leaves open.
  const knownBuiltins = (guardrail?.content_filter_builtins ?? []) as readonly ApiBuiltinFilterInput[];
  const knownPatterns = (guardrail?.content_filters ?? []) as readonly ApiPatternFilterInput[];
  const [name, setName] = useState(guardrail?.name ?? '');
  const [description, setDescription] = useState(guardrail?.description ?? '');
  const [builtins, setBuiltins] = useState<Readonly<Record<string, string>>>(
    Object.fromEntries(knownBuiltins.map(({ slug, action }) => [slug, action])),
  );
  /** Undefined: each filter keeps its own. */
  const [answers, setAnswers] = useState<boolean>();
  const [patterns, setPatterns] = useState(knownPatterns.map(({ pattern }) => pattern).join('\n'));
  /** Empty: each pattern keeps its own. */
  const [patternAction, setPatternAction] = useState(knownPatterns.length === 0 ? 'block' : '');
  const [models, setModels] = useState((guardrail?.allowed_models ?? []).join('\n'));
  const [providers, setProviders] = useState((guardrail?.allowed_providers ?? []).join('\n'));
  const [limit, setLimit] = useState(guardrail?.limit_usd == null ? '' : String(guardrail.limit_usd));
  const [reset, setReset] = useState(guardrail?.reset_interval ?? 'monthly');
  const [zdr, setZdr] = useState(guardrail?.enforce_zdr ?? false);
  const directions: { apply_to?: ('request' | 'response')[] } =
    answers === undefined ? {} : { apply_to: answers ? ['request', 'response'] : ['request'] };
  const body: Body<'PATCH /guardrails/{id}'> = {
    name,
    description: description || null,
    content_filter_builtins: Object.entries(builtins)
      .filter(([, action]) => action !== '')
      .map(([slug, action]) => {
        const known = knownBuiltins.find((each) => each.slug === slug);
        return { ...known, slug, action: action as 'block', ...directions };
      }),
    // A pattern may contain commas.
    content_filters: patterns
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((pattern) => {
        const known = knownPatterns.find((each) => each.pattern === pattern);
        return { ...known, pattern, action: (patternAction || known?.action || 'block') as 'block' };
      }),
    allowed_models: listOrNull(models),
    allowed_providers: listOrNull(providers),
    limit_usd: limit === '' ? null : Number(limit),
    reset_interval: limit === '' ? null : ((reset || 'monthly') as 'monthly'),
    enforce_zdr: zdr || null,
  };
  const change = useChange(
    () =>
      guardrail === undefined
        ? api('POST /guardrails', { body: { ...body, name, ...inWorkspace(workspace) } })
        : api('PATCH /guardrails/{id}', { path: { id: guardrail.id }, body }),
    ['GET /guardrails', 'GET /guardrails/{id}'],
    ({ data }) => (guardrail === undefined ? go(link(`/guardrails/${data.id}`)) : onClose()),
  );
  return (
    <Dialog title={guardrail === undefined ? 'Create a guardrail' : `Edit ${guardrail.name}`} wide onClose={onClose}>
      <Form submit={guardrail === undefined ? 'Create' : 'Save'} change={change} onCancel={onClose}>
        <div class="form-row">
          <Text label="Name" required value={name} onInput={setName} />
          <Text label="Description" value={description} onInput={setDescription} />
        </div>
        <h3>Filters of texts</h3>
        <div class="form-row">
          {BUILTINS.map(([slug, label]) => (
            <Choice
              key={slug}
              label={label}
              value={builtins[slug] ?? ''}
              options={ACTIONS}
              onChange={(action) => setBuiltins({ ...builtins, [slug]: action })}
            />
          ))}
        </div>
        <Check
          label="These also search the answers of models"
          checked={answers ?? knownBuiltins.some(({ apply_to }) => apply_to?.includes('response'))}
          onChange={setAnswers}
        />
        <div class="form-row">
          <Area
            label="Patterns, one a line"
            code
            rows={3}
            value={patterns}
            onInput={setPatterns}
            hint="Regular expressions of RE2"
          />
          <Choice
            label="On a match of a pattern"
            value={patternAction}
            options={knownPatterns.length === 0 ? ACTIONS.slice(1) : [KEPT_ACTION, ...ACTIONS.slice(1)]}
            onChange={setPatternAction}
          />
        </div>
        <h3>Models and spend</h3>
        <div class="form-row">
          <Area label="Allowed models, one a line" code rows={3} value={models} onInput={setModels} hint="Empty: all" />
          <Area
            label="Allowed providers, one a line"
            code
            rows={3}
            value={providers}
            onInput={setProviders}
            hint="Empty: all"
          />
        </div>
        <div class="form-row">
          <Text
            label="Limit in USD of each key or member"
            type="number"
            min={0}
            step="any"
            value={limit}
            onInput={setLimit}
            hint="Empty: none"
          />
          <Choice label="Limit resets" value={reset} options={RESETS.slice(1)} onChange={setReset} />
        </div>
        <Check label="Only endpoints that keep no data (ZDR)" checked={zdr} onChange={setZdr} />
      </Form>
    </Dialog>
  );
}

function GuardrailDetail({ id }: { id: string }) {
  const { data, error, refetch } = useApi('GET /guardrails/{id}', { path: { id } });
  const [action, setAction] = useState<'edit' | 'delete'>();
  const remove = useChange(
    () => api('DELETE /guardrails/{id}', { path: { id } }),
    ['GET /guardrails'],
    () => go(link('/guardrails')),
  );
  const guardrail = data?.data;
  return (
    <Page
      title={guardrail?.name ?? 'Guardrail'}
      about={guardrail?.description ?? undefined}
      actions={guardrail && <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')} />}
    >
      <Problem error={error} retry={() => void refetch()} />
      {guardrail === undefined ? (
        error === null && <Waiting />
      ) : (
        <>
          <Card title="Rules">
            <Facts
              rows={[
                ['Filters', <FilterBadges key="filters" item={guardrail} />],
                ['Models', guardrail.allowed_models?.join(', ') ?? 'all'],
                ['Providers', guardrail.allowed_providers?.join(', ') ?? 'all'],
                [
                  'Limit',
                  guardrail.limit_usd === null
                    ? 'none'
                    : `${usd(guardrail.limit_usd)} ${guardrail.reset_interval ?? ''}`,
                ],
                ['Zero data retention', guardrail.enforce_zdr ? 'required' : 'not required'],
                ['Regions', guardrail.allowed_data_regions?.join(', ') ?? 'all'],
              ]}
            />
          </Card>
          <TestBox id={id} hasFilters={filtersOf(guardrail).length > 0} />
          <div class="columns">
            <KeyAssignments id={id} workspace={guardrail.workspace_id} />
            <MemberAssignments id={id} />
          </div>
          {action === 'edit' && <EditGuardrail guardrail={guardrail} onClose={() => setAction(undefined)} />}
          {action === 'delete' && (
            <Confirm
              title={`Delete ${guardrail.name}?`}
              action="Delete the guardrail"
              change={remove}
              onClose={() => setAction(undefined)}
            >
              <p>This cannot be undone.</p>
              <ul>
                <li>Keys and members that it is assigned to are no longer restricted by it.</li>
                <li>Its filters, allowed models and limits are lost.</li>
              </ul>
            </Confirm>
          )}
        </>
      )}
    </Page>
  );
}

/** Shows what a text would trigger; nothing is sent to a model. */
function TestBox({ id, hasFilters }: { id: string; hasFilters: boolean }) {
  const [text, setText] = useState('');
  const change = useChange(() => api('POST /guardrails/{id}/test', { path: { id }, body: { text } }));
  const result = change.data?.data;
  return (
    <Card title="Test a text">
      <Form submit="Test" change={change} disabled={text === ''}>
        <Area
          label="As a user would write it"
          rows={4}
          value={text}
          onInput={setText}
          hint={hasFilters ? 'Nothing is sent to a model.' : 'This guardrail has no filters yet.'}
        />
      </Form>
      {result !== undefined && (
        <div class="stack verdict" role="status">
          <p>
            {result.blocked ? (
              <Badge tone="bad">Blocked</Badge>
            ) : result.matches.length > 0 ? (
              <Badge tone="warn">Allowed, with matches</Badge>
            ) : (
              <Badge tone="good">Nothing found</Badge>
            )}
          </p>
          <ul class="badges">
            {result.matches.map((match) => (
              <li key={`${match.filter} ${match.start}`}>
                <Badge tone={ACTION_TONES[match.action] ?? 'plain'}>
                  {match.action} {match.filter} at {match.start}
                </Badge>
              </li>
            ))}
          </ul>
          {!result.blocked && result.matches.length > 0 && (
            <>
              <h3>What the model gets</h3>
              <p class="prose">{result.text}</p>
            </>
          )}
        </div>
      )}
    </Card>
  );
}

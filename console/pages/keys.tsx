/** Inference keys: what each may spend and has spent; created, changed, rotated, disabled and deleted here. */
import { useState } from 'preact/hooks';
import type { ApiKey } from '../api.gen.ts';
import { api, type Body } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Code, Empty, Facts, Meter, Note, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { dayText, usd } from '../ui/format.ts';
import { Check, Choice, Confirm, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 100;
export const RESETS: readonly Option[] = [
  ['', 'Never'],
  ['daily', 'Daily'],
  ['weekly', 'Weekly'],
  ['monthly', 'Monthly'],
];

export function Keys({ rest }: PageParts) {
  return rest === '' ? <KeyList /> : <KeyDetail key={rest} hash={rest} />;
}

function KeyList() {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = params.get('workspace') ?? '';
  const disabled = params.get('disabled') === 'yes';
  const creating = params.get('new') === 'key';
  const reading = useApi('GET /keys', {
    query: { offset, include_disabled: disabled, ...inWorkspace(workspace) },
  });
  return (
    <Page
      title="Keys"
      about="What applications call models with. A secret is shown once, when its key is created."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'key' })}>
          Create a key
        </Button>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
        <Check
          label="Show disabled keys"
          checked={disabled}
          onChange={(value) => set({ disabled: value ? 'yes' : undefined }, true)}
        />
      </search>
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        lines={6}
        empty={
          <Empty icon="keys" title="No keys here">
            <p>An application needs an inference key to call models.</p>
          </Empty>
        }
        pages={{ size: PAGE }}
        label="Keys"
        keyOf={({ hash }) => hash}
        linkOf={({ hash }) => link(`/keys/${hash}`)}
        columns={[
          { head: 'Name', cell: (key) => <span class="clip">{key.name}</span> },
          { head: 'Key', minor: true, cell: (key) => <span class="mono small soft">{key.label}</span> },
          { head: 'State', cell: (key) => <KeyState item={key} /> },
          { head: 'Today', end: true, minor: true, cell: (key) => usd(key.usage_daily) },
          { head: 'This month', end: true, cell: (key) => usd(key.usage_monthly) },
          { head: 'Limit', end: true, cell: (key) => <Limit item={key} /> },
          { head: 'Created', end: true, minor: true, cell: (key) => dayText(key.created_at) },
        ]}
      />
      {creating && <CreateKey workspace={workspace} onClose={() => set({ new: undefined }, true)} />}
    </Page>
  );
}

function KeyState({ item }: { item: ApiKey }) {
  if (item.disabled) return <Badge tone="bad">Disabled</Badge>;
  if (item.expires_at !== null && Date.parse(item.expires_at) <= Date.now()) return <Badge tone="bad">Expired</Badge>;
  if (item.limit_remaining === 0) return <Badge tone="warn">Limit reached</Badge>;
  return <Badge tone="good">Active</Badge>;
}

function Limit({ item: { limit, limit_remaining, limit_reset, name } }: { item: ApiKey }) {
  if (limit === null) return <span class="soft">none</span>;
  const used = limit === 0 ? 1 : 1 - (limit_remaining ?? 0) / limit;
  return (
    <span class="limit">
      <span>
        {usd(limit)}
        {limit_reset !== null && <span class="soft"> {limit_reset}</span>}
      </span>
      <Meter share={used} label={`Used of the limit of ${name}`} />
    </span>
  );
}

interface KeyFields {
  name: string;
  limit: string;
  reset: string;
  byok: boolean;
  requests: string;
  tokens: string;
  expires: string;
}

const NO_FIELDS: KeyFields = { name: '', limit: '', reset: '', byok: false, requests: '', tokens: '', expires: '' };
const numberOrNull = (text: string) => (text === '' ? null : Number(text));

function termsOf(fields: KeyFields): Body<'PATCH /keys/{hash}'> {
  const limits = { requests_per_minute: numberOrNull(fields.requests), tokens_per_minute: numberOrNull(fields.tokens) };
  return {
    name: fields.name,
    limit: numberOrNull(fields.limit),
    limit_reset: (fields.reset || null) as 'daily' | 'weekly' | 'monthly' | null,
    include_byok_in_limit: fields.byok,
    rate_limits: fields.requests === '' && fields.tokens === '' ? null : limits,
  };
}

function KeyForm({ fields, onFields }: { fields: KeyFields; onFields(fields: KeyFields): void }) {
  const set = (changes: Partial<KeyFields>) => onFields({ ...fields, ...changes });
  return (
    <>
      <Text label="Name" required maxLength={200} value={fields.name} onInput={(name) => set({ name })} />
      <div class="form-row">
        <Text
          label="Limit in USD"
          type="number"
          min={0}
          step="any"
          value={fields.limit}
          onInput={(limit) => set({ limit })}
          hint="Empty: no limit"
        />
        <Choice label="Limit resets" value={fields.reset} options={RESETS} onChange={(reset) => set({ reset })} />
      </div>
      <div class="form-row">
        <Text
          label="Requests a minute"
          type="number"
          min={1}
          value={fields.requests}
          onInput={(requests) => set({ requests })}
        />
        <Text
          label="Tokens a minute"
          type="number"
          min={1}
          value={fields.tokens}
          onInput={(tokens) => set({ tokens })}
        />
      </div>
      <Check
        label="The limit also counts spend on own provider keys (BYOK)"
        checked={fields.byok}
        onChange={(byok) => set({ byok })}
      />
    </>
  );
}

function CreateKey({ workspace, onClose }: { workspace: string; onClose(): void }) {
  const [fields, setFields] = useState(NO_FIELDS);
  const [place, setPlace] = useState(workspace);
  const change = useChange(
    () =>
      api('POST /keys', {
        body: {
          ...termsOf(fields),
          name: fields.name,
          ...(place !== '' && { workspace_id: place }),
          ...(fields.expires !== '' && { expires_at: new Date(fields.expires).toISOString() }),
        },
      }),
    ['GET /keys'],
  );
  if (change.data !== undefined) return <Secret title="The new key" secret={change.data.key} onClose={onClose} />;
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <Form submit="Create" change={change} onCancel={onClose}>
        <KeyForm fields={fields} onFields={setFields} />
        <div class="form-row">
          <WorkspaceChoice value={place} onChange={setPlace} />
          <Text
            label="Expires"
            type="datetime-local"
            value={fields.expires}
            onInput={(expires) => setFields({ ...fields, expires })}
          />
        </div>
      </Form>
    </Dialog>
  );
}

function Secret({ title, secret, onClose }: { title: string; secret: string; onClose(): void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="form">
        <Note tone="warn">It is shown only now. Copy it to where it is used.</Note>
        <Code label="key" text={secret} />
        <footer class="form-foot">
          <Button kind="main" onClick={onClose}>
            I have copied it
          </Button>
        </footer>
      </div>
    </Dialog>
  );
}

type Action = 'edit' | 'rotate' | 'disable' | 'delete';

function KeyDetail({ hash }: { hash: string }) {
  const { data, error, refetch } = useApi('GET /keys/{hash}', { path: { hash } });
  const [action, setAction] = useState<Action>();
  const key = data?.data;
  const close = () => setAction(undefined);
  return (
    <Page
      title={key?.name ?? 'Key'}
      about={<span class="mono">{key?.label}</span>}
      actions={
        key && (
          <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')}>
            <Button onClick={() => setAction('rotate')}>Rotate</Button>
            <Button onClick={() => setAction('disable')}>{key.disabled ? 'Enable' : 'Disable'}</Button>
          </ItemActions>
        )
      }
    >
      <Problem error={error} retry={() => void refetch()} />
      {key === undefined ? (
        error === null && <Waiting />
      ) : (
        <>
          <Card title="Key" actions={<KeyState item={key} />}>
            <Facts
              rows={[
                ['Limit', <Limit key="limit" item={key} />],
                key.limit !== null && ['Remaining', usd(key.limit_remaining)],
                ['Requests a minute', key.rate_limits?.requests_per_minute ?? 'as configured'],
                ['Tokens a minute', key.rate_limits?.tokens_per_minute ?? 'as configured'],
                ['Expires', key.expires_at === null ? 'never' : <Time key="expires" at={key.expires_at} exact />],
                ['Created', <Time key="created" at={key.created_at} exact />],
                [
                  'Workspace',
                  <a key="workspace" href={link(`/workspaces/${key.workspace_id}`)}>
                    Open
                  </a>,
                ],
              ]}
            />
          </Card>
          <Card title="Spend" actions={<a href={link('/requests', { key: key.hash })}>Its requests</a>}>
            <Facts
              rows={[
                ['Today', usd(key.usage_daily)],
                ['This week', usd(key.usage_weekly)],
                ['This month', usd(key.usage_monthly)],
                ['In all', usd(key.usage)],
                ['On own provider keys', usd(key.byok_usage)],
              ]}
            />
          </Card>
          {action === 'edit' && <EditKey item={key} onClose={close} />}
          {action === 'rotate' && <RotateKey item={key} onClose={close} />}
          {action === 'disable' && <DisableKey item={key} onClose={close} />}
          {action === 'delete' && <DeleteKey item={key} onClose={close} />}
        </>
      )}
    </Page>
  );
}

interface ActionProps {
  item: ApiKey;
  onClose(): void;
}

const STALE = ['GET /keys', 'GET /keys/{hash}'] as const;

function EditKey({ item, onClose }: ActionProps) {
  const [fields, setFields] = useState<KeyFields>({
    ...NO_FIELDS,
    name: item.name,
    limit: item.limit === null ? '' : String(item.limit),
    reset: item.limit_reset ?? '',
    byok: item.include_byok_in_limit,
    requests: String(item.rate_limits?.requests_per_minute ?? ''),
    tokens: String(item.rate_limits?.tokens_per_minute ?? ''),
  });
  const change = useChange(
    () => api('PATCH /keys/{hash}', { path: { hash: item.hash }, body: termsOf(fields) }),
    STALE,
    onClose,
  );
  return (
    <Dialog title={`Edit ${item.name}`} onClose={onClose}>
      <Form submit="Save" change={change} onCancel={onClose}>
        <KeyForm fields={fields} onFields={setFields} />
      </Form>
    </Dialog>
  );
}

const GRACES: readonly Option[] = [
  ['0', 'At once'],
  ['3600', 'In an hour'],
  ['86400', 'In a day'],
  ['604800', 'In a week'],
];

function RotateKey({ item, onClose }: ActionProps) {
  const [grace, setGrace] = useState('86400');
  const change = useChange(
    () =>
      api('POST /keys/{hash}/rotate', {
        path: { hash: item.hash },
        body: { revoke_previous_after_seconds: Number(grace) },
      }),
    ['GET /keys'],
    ({ data }) => go(link(`/keys/${data.hash}`), true),
  );
  if (change.data !== undefined) return <Secret title="The new secret" secret={change.data.key} onClose={onClose} />;
  return (
    <Dialog title={`Rotate ${item.name}`} onClose={onClose}>
      <Form submit="Rotate" change={change} onCancel={onClose}>
        <p>The key gets a new secret. Its settings, spend and guardrails stay.</p>
        <Choice label="The present secret ends" value={grace} options={GRACES} onChange={setGrace} />
      </Form>
    </Dialog>
  );
}

function DisableKey({ item, onClose }: ActionProps) {
  const disabled = !item.disabled;
  const change = useChange(
    () => api('PATCH /keys/{hash}', { path: { hash: item.hash }, body: { disabled } }),
    STALE,
    onClose,
  );
  return (
    <Confirm
      title={disabled ? `Disable ${item.name}?` : `Enable ${item.name}?`}
      action={disabled ? 'Disable' : 'Enable'}
      change={change}
      onClose={onClose}
    >
      <p>
        {disabled
          ? 'Applications that use it get 401 from now on. You can enable it again.'
          : 'Applications that have its secret can call models again.'}
      </p>
    </Confirm>
  );
}

function DeleteKey({ item, onClose }: ActionProps) {
  const change = useChange(
    () => api('DELETE /keys/{hash}', { path: { hash: item.hash } }),
    ['GET /keys'],
    () => go(link('/keys')),
  );
  return (
    <Confirm title={`Delete ${item.name}?`} action="Delete the key" word={item.name} change={change} onClose={onClose}>
      <p>This cannot be undone.</p>
      <ul>
        <li>Applications that use {item.label} get 401 at once.</li>
        <li>Its limit, rate limits and guardrail assignments are lost.</li>
        <li>The {usd(item.usage)} that it spent stay in the records.</li>
      </ul>
    </Confirm>
  );
}

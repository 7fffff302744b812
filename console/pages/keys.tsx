/** Inference keys: what each may spend and has spent; created, changed, rotated, disabled and deleted here. */
import { useState } from 'preact/hooks';
import type { ApiKey } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { CreateKey, EditKey } from '../keys/form.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Code, Empty, Facts, Meter, Note, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { dayText, usd } from '../ui/format.ts';
import { Check, Choice, Confirm, Dialog, Form, type Option } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { RATES } from '../ui/rate-limits.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 100;
export function Keys({ rest }: PageParts) {
  return rest === '' ? <KeyList /> : <KeyDetail key={rest} hash={rest} />;
}

function KeyList() {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = params.get('workspace') ?? '';
  const disabled = params.get('disabled') === 'yes';
  const creating = params.get('new') === 'key';
  const close = () => set({ new: undefined }, true);
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
      {creating && (
        <CreateKey
          workspace={workspace}
          onClose={close}
          shown={(secret) => <Secret title="The new key" secret={secret} onClose={close} />}
        />
      )}
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
                ...ratesOf(key),
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
                ['On BYOK credentials', usd(key.byok_usage)],
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

/** The limits that the key has; without any, those that the configuration gives it. */
function ratesOf({ rate_limits: limits }: ApiKey): (readonly [string, string | number])[] {
  const set = RATES.flatMap(([name, label]) => {
    const limit = limits?.[name] ?? null;
    return limit === null ? [] : [[label, limit] as const];
  });
  return set.length === 0 ? [['Rate limits', 'as configured']] : set;
}

interface ActionProps {
  item: ApiKey;
  onClose(): void;
}

const STALE = ['GET /keys', 'GET /keys/{hash}'] as const;

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
  );
  if (change.data !== undefined) {
    const { data, key } = change.data;
    // The page of the new hash is another one, so the secret is shown first.
    return <Secret title="The new secret" secret={key} onClose={() => go(link(`/keys/${data.hash}`), true)} />;
  }
  return (
    <Dialog title={`Rotate ${item.name}`} onClose={onClose}>
      <Form submit="Rotate" change={change} onCancel={onClose}>
        <p>The key gets a new secret. Its settings, spend and guardrails stay.</p>
        <Choice label="The current secret ends" value={grace} options={GRACES} onChange={setGrace} />
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

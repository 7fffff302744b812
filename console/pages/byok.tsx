/** Own provider keys (BYOK): credentials of the customer's accounts at providers. */
import { useState } from 'preact/hooks';
import type { ApiByokKey } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { useParams } from '../route.ts';
import { Badge, Button, Empty, Page, Problem } from '../ui/basics.tsx';
import { dayText } from '../ui/format.ts';
import { Area, Check, Confirm, Dialog, Form, Text } from '../ui/forms.tsx';
import { ActionInRow, DeleteInRow } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 50;

export function Byok(_: PageParts) {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = params.get('workspace') ?? '';
  const [removing, setRemoving] = useState<ApiByokKey>();
  const reading = useApi('GET /byok', {
    query: { offset, limit: PAGE, ...inWorkspace(workspace) },
  });
  const toggle = useChange(
    (item: ApiByokKey) => api('PATCH /byok/{id}', { path: { id: item.id }, body: { disabled: !item.disabled } }),
    ['GET /byok'],
  );
  return (
    <Page
      title="Own provider keys"
      about="Credentials of your accounts at providers. They are stored encrypted and never shown again."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'byok' })}>
          Add a key
        </Button>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
      </search>
      <Problem error={toggle.error} />
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        empty={
          <Empty icon="byok" title="No own provider keys">
            <p>With one, requests of this workspace use your account at the provider.</p>
          </Empty>
        }
        pages={{ size: PAGE, total: reading.data?.total_count }}
        label="Own provider keys, in the order of use"
        keyOf={({ id }) => id}
        columns={[
          { head: 'Provider', cell: (item) => item.provider },
          { head: 'Name', minor: true, cell: (item) => <span class="clip">{item.name ?? ''}</span> },
          { head: 'Key', minor: true, cell: (item) => <span class="mono small soft">{item.label}</span> },
          {
            head: 'Use',
            cell: (item) => (
              <span class="badges">
                <Badge tone={item.disabled ? 'bad' : 'good'}>{item.disabled ? 'Disabled' : 'Active'}</Badge>
                {item.is_fallback && <Badge>Fallback</Badge>}
                {item.is_byok_only && <Badge tone="info">Only this</Badge>}
              </span>
            ),
          },
          { head: 'Added', end: true, minor: true, cell: (item) => dayText(item.created_at) },
          {
            head: 'Change',
            end: true,
            cell: (item) => (
              <>
                <ActionInRow name={item.label} onClick={() => toggle.mutate(item)}>
                  {item.disabled ? 'Enable' : 'Disable'}
                </ActionInRow>
                <DeleteInRow name={item.label} onClick={() => setRemoving(item)} />
              </>
            ),
          },
        ]}
      />
      {params.get('new') === 'byok' && <AddKey workspace={workspace} onClose={() => set({ new: undefined }, true)} />}
      {removing && <RemoveKey item={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}

function AddKey({ workspace, onClose }: { workspace: string; onClose(): void }) {
  const [provider, setProvider] = useState('');
  const [key, setKey] = useState('');
  const [name, setName] = useState('');
  const [models, setModels] = useState('');
  const [fallback, setFallback] = useState(false);
  const [only, setOnly] = useState(false);
  const providers = useApi('GET /providers');
  const allowed = models
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  const change = useChange(
    () =>
      api('POST /byok', {
        body: {
          ...{ provider, key: key.trim(), name: name || null, is_fallback: fallback, is_byok_only: only },
          allowed_models: allowed.length === 0 ? null : allowed,
          ...inWorkspace(workspace),
        },
      }),
    ['GET /byok'],
    onClose,
  );
  return (
    <Dialog title="Add an own provider key" onClose={onClose}>
      <Form submit="Add" change={change} onCancel={onClose}>
        <Text
          label="Provider"
          required
          value={provider}
          onInput={setProvider}
          list={(providers.data?.data ?? []).map(({ slug }) => slug)}
        />
        <Text label="Key" type="password" required value={key} onInput={setKey} />
        <Text label="Name" value={name} onInput={setName} />
        <Area
          label="Only for these models, one a line"
          code
          rows={2}
          value={models}
          onInput={setModels}
          hint="Empty: all models of the provider"
        />
        <Check
          label="Use it only after the gateway's own credentials failed"
          checked={fallback}
          onChange={setFallback}
        />
        <Check label="Never use the gateway's own credentials for this provider" checked={only} onChange={setOnly} />
      </Form>
    </Dialog>
  );
}

function RemoveKey({ item, onClose }: { item: ApiByokKey; onClose(): void }) {
  const change = useChange(() => api('DELETE /byok/{id}', { path: { id: item.id } }), ['GET /byok'], onClose);
  return (
    <Confirm title={`Delete the key of ${item.provider}?`} action="Delete the key" change={change} onClose={onClose}>
      <p>
        The gateway forgets {item.label}, which cannot be undone. Requests then use the gateway's own credentials, or
        are refused if there are none.
      </p>
    </Confirm>
  );
}

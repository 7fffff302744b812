/** BYOK credentials: those of the customer's accounts at providers. */
import { useState } from 'preact/hooks';
import type { ApiByokKey } from '../api.gen.ts';
import { api } from '../api.ts';
import { AddKey, EditKey, RemoveKey } from '../byok/dialogs.tsx';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { useParams } from '../route.ts';
import { Badge, Button, Empty, Page, Problem } from '../ui/basics.tsx';
import { dayText } from '../ui/format.ts';
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
  const edited = reading.data?.data.find(({ id }) => id === params.get('edit'));
  const toggle = useChange(
    (item: ApiByokKey) => api('PATCH /byok/{id}', { path: { id: item.id }, body: { disabled: !item.disabled } }),
    ['GET /byok'],
  );
  return (
    <Page
      title="BYOK credentials"
      about="Credentials of your accounts at providers. They are stored encrypted and never shown again."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'byok' })}>
          Add a credential
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
          <Empty icon="byok" title="No BYOK credentials">
            <p>With one, requests of this workspace use your account at the provider.</p>
          </Empty>
        }
        pages={{ size: PAGE, total: reading.data?.total_count }}
        label="BYOK credentials, in the order of use"
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Provider',
            cell: (item) => (
              <span class="two-lines">
                <span>{item.provider}</span>
                <span class="small soft clip">{item.name ?? item.label}</span>
              </span>
            ),
          },
          { head: 'Key', minor: true, cell: (item) => <span class="mono small soft">{item.label}</span> },
          {
            head: 'Use',
            cell: (item) => (
              <span class="badges states">
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
                <ActionInRow name={item.label} onClick={() => set({ edit: item.id })}>
                  Edit
                </ActionInRow>
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
      {edited && <EditKey item={edited} onClose={() => set({ edit: undefined }, true)} />}
      {removing && <RemoveKey item={removing} onClose={() => setRemoving(undefined)} />}
    </Page>
  );
}

/** Members and groups from the identity provider (SCIM), and the roles that groups give. */
import { useState } from 'preact/hooks';
import type { ApiScimGroupMapping } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { areSettled, useAll, useApi, useChange } from '../query.ts';
import { Badge, Button, Card, Empty, Note, Page, Problem, Waiting } from '../ui/basics.tsx';
import { dayText, NONE } from '../ui/format.ts';
import { Check, Choice, Confirm, Dialog, Form } from '../ui/forms.tsx';
import { DeleteInRow } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 50;
const ROLES = [
  ['member', 'Member'],
  ['admin', 'Administrator'],
] as const;

export function Directory(_: PageParts) {
  const people = usePeople();
  const sync = useChange(() => api('POST /scim/sync-jobs', {}), ['GET /scim/groups', 'GET /organization/members']);
  return (
    <Page
      title="Members"
      about="People of the organization. An identity provider keeps them current through SCIM."
      actions={
        <Button icon="refresh" busy={sync.isPending} onClick={() => sync.mutate(undefined)}>
          Sync now
        </Button>
      }
    >
      <Problem error={sync.error} />
      {sync.isSuccess && <Note tone="good">The sync has started.</Note>}
      <People reading={people} />
      {areSettled(people) && <Groups />}
    </Page>
  );
}

function usePeople() {
  return useApi('GET /organization/members', { query: { offset: useOffset(), limit: PAGE } });
}

function People({ reading }: { reading: ReturnType<typeof usePeople> }) {
  return (
    <PagedList
      title="Members"
      label="Members"
      reading={reading}
      rows={reading.data?.data}
      empty={<Empty icon="scim" title="No members" />}
      pages={{ size: PAGE, total: reading.data?.total_count }}
      keyOf={({ id }) => id}
      columns={[
        { head: 'Name', cell: (each) => [each.first_name, each.last_name].filter(Boolean).join(' ') || NONE },
        { head: 'E-mail', cell: (each) => each.email },
        {
          head: 'Role',
          cell: (each) => (
            <Badge tone={each.role === 'org:admin' ? 'info' : 'plain'}>{each.role.replace('org:', '')}</Badge>
          ),
        },
        { head: 'Id', minor: true, cell: (each) => <span class="mono small soft">{each.id}</span> },
      ]}
    />
  );
}

function Groups() {
  const groups = useAll('GET /scim/groups');
  const mappings = useAll('GET /scim/group-mappings');
  const workspaces = useAll('GET /workspaces');
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<ApiScimGroupMapping>();
  const groupName = (id: string) => groups.data?.rows.find((each) => each.id === id)?.display_name ?? id;
  const workspaceName = (id: string) => workspaces.data?.rows.find((each) => each.id === id)?.name ?? id;
  return (
    <>
      <Card
        title="Roles by group"
        flush
        actions={
          groups.data !== undefined &&
          groups.data.rows.length > 0 && (
            <Button icon="plus" onClick={() => setAdding(true)}>
              Map a group
            </Button>
          )
        }
      >
        <Problem error={groups.error ?? mappings.error} />
        {!areSettled(groups, mappings) ? (
          <Waiting lines={3} />
        ) : groups.data?.rows.length === 0 ? (
          <Empty icon="scim" title="No groups yet">
            <p>
              Create a token with <code>npx gatehouse scim token create</code> and give it to your identity provider
              with the address <code>/scim/v2</code>.
            </p>
          </Empty>
        ) : (
          <Table
            label="Roles by group"
            rows={mappings.data?.rows ?? []}
            keyOf={({ id }) => id}
            columns={[
              { head: 'Group', cell: (each) => groupName(each.scim_group_id) },
              { head: 'Workspace', cell: (each) => workspaceName(each.workspace_id) },
              { head: 'Role', cell: (each) => <Badge>{each.role}</Badge> },
              { head: 'Since', end: true, minor: true, cell: (each) => dayText(each.created_at) },
              {
                head: 'Change',
                end: true,
                cell: (each) => (
                  <DeleteInRow
                    name={`the mapping of ${groupName(each.scim_group_id)}`}
                    onClick={() => setRemoving(each)}
                  />
                ),
              },
            ]}
          />
        )}
      </Card>
      {adding && (
        <MapGroup
          groups={(groups.data?.rows ?? []).map((each) => [each.id, each.display_name])}
          onClose={() => setAdding(false)}
        />
      )}
      {removing && (
        <RemoveMapping
          mapping={removing}
          name={groupName(removing.scim_group_id)}
          onClose={() => setRemoving(undefined)}
        />
      )}
    </>
  );
}

function MapGroup({ groups, onClose }: { groups: readonly (readonly [string, string])[]; onClose(): void }) {
  const [group, setGroup] = useState(groups[0]?.[0] ?? '');
  const [workspace, setWorkspace] = useState('');
  const [role, setRole] = useState('member');
  const workspaces = useApi('GET /workspaces', { query: { limit: 1 } });
  const place = workspace || (workspaces.data?.data[0]?.id ?? '');
  const change = useChange(
    () =>
      api('POST /scim/group-mappings', { body: { scim_group_id: group, workspace_id: place, role: role as 'member' } }),
    ['GET /scim/group-mappings'],
    onClose,
  );
  return (
    <Dialog title="Map a group to a workspace" onClose={onClose}>
      <Form submit="Map" change={change} onCancel={onClose}>
        <Choice label="Group" value={group} options={groups} onChange={setGroup} />
        <WorkspaceChoice value={workspace} onChange={setWorkspace} />
        <Choice label="Role of its members" value={role} options={ROLES} onChange={setRole} />
      </Form>
    </Dialog>
  );
}

function RemoveMapping({ mapping, name, onClose }: { mapping: ApiScimGroupMapping; name: string; onClose(): void }) {
  const [keep, setKeep] = useState(true);
  const change = useChange(
    () => api('DELETE /scim/group-mappings/{id}', { path: { id: mapping.id }, query: { keep_members: keep } as never }),
    ['GET /scim/group-mappings'],
    onClose,
  );
  return (
    <Confirm title={`Delete the mapping of ${name}?`} action="Delete the mapping" change={change} onClose={onClose}>
      <p>Members of the group no longer get the role {mapping.role} by it.</p>
      <Check label="Members that it added stay in the workspace" checked={keep} onChange={setKeep} />
    </Confirm>
  );
}

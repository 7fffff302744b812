/** Workspaces: their settings, members and budgets. */
import { useState } from 'preact/hooks';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useAll, useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Empty, Facts, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { dayText, NONE, usd } from '../ui/format.ts';
import { Choice, Confirm, Dialog, Form, Text } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { Table } from '../ui/table.tsx';
import { EditBudget, EditWorkspace, INTERVALS, type Interval } from '../workspaces/edit.tsx';

const PAGE = 50;
export function Workspaces({ rest }: PageParts) {
  return rest === '' ? <WorkspaceList /> : <WorkspaceDetail key={rest} id={rest} />;
}

function WorkspaceList() {
  const { params, set } = useParams();
  const offset = useOffset();
  const reading = useApi('GET /workspaces', { query: { offset, limit: PAGE } });
  return (
    <Page
      title="Workspaces"
      about="Teams: each has its own keys, members, budgets and guardrails."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'workspace' })}>
          Create a workspace
        </Button>
      }
    >
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        empty={null}
        pages={{ size: PAGE, total: reading.data?.total_count }}
        label="Workspaces"
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/workspaces/${id}`)}
        columns={[
          { head: 'Name', cell: (each) => <span class="clip">{each.name}</span> },
          { head: 'Slug', cell: (each) => <span class="mono small">{each.slug}</span> },
          {
            head: 'Description',
            minor: true,
            cell: (each) => <span class="soft clip">{each.description ?? ''}</span>,
          },
          {
            head: 'I/O logging',
            cell: (each) =>
              each.is_observability_io_logging_enabled ? <Badge tone="info">On</Badge> : <Badge>Off</Badge>,
          },
          { head: 'Created', end: true, minor: true, cell: (each) => dayText(each.created_at) },
        ]}
      />
      {params.get('new') === 'workspace' && <CreateWorkspace onClose={() => set({ new: undefined }, true)} />}
    </Page>
  );
}

function CreateWorkspace({ onClose }: { onClose(): void }) {
  const [name, setName] = useState('');
  const [slug, setSlug] = useState('');
  const [description, setDescription] = useState('');
  const made =
    slug === ''
      ? name
          .toLowerCase()
          .replace(/[^a-z0-9]+/g, '-')
          .replace(/^-|-$/g, '')
      : slug;
  const change = useChange(
    () => api('POST /workspaces', { body: { name, slug: made, description: description || null } }),
    ['GET /workspaces'],
    ({ data }) => go(link(`/workspaces/${data.id}`)),
  );
  return (
    <Dialog title="Create a workspace" onClose={onClose}>
      <Form submit="Create" change={change} onCancel={onClose}>
        <Text label="Name" member="name" required value={name} onInput={setName} />
        <Text label="Slug" member="slug" value={made} onInput={setSlug} code hint="Names the workspace in URLs" />
        <Text label="Description" member="description" value={description} onInput={setDescription} />
      </Form>
    </Dialog>
  );
}

function WorkspaceDetail({ id }: { id: string }) {
  const { data, error, refetch } = useApi('GET /workspaces/{id}', { path: { id } });
  const [action, setAction] = useState<'edit' | 'delete'>();
  const workspace = data?.data;
  const remove = useChange(
    () => api('DELETE /workspaces/{id}', { path: { id } }),
    ['GET /workspaces'],
    () => go(link('/workspaces')),
  );
  return (
    <Page
      title={workspace?.name ?? 'Workspace'}
      about={workspace?.description ?? <span class="mono">{workspace?.slug}</span>}
      actions={workspace && <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')} />}
    >
      <Problem error={error} retry={() => void refetch()} />
      {workspace === undefined ? (
        error === null && <Waiting />
      ) : (
        <>
          <Card title="Settings">
            <Facts
              rows={[
                [
                  'Slug',
                  <span key="slug" class="mono">
                    {workspace.slug}
                  </span>,
                ],
                ['Default model', workspace.default_text_model ?? NONE],
                ['Default image model', workspace.default_image_model ?? NONE],
                ['Disabled server tools', workspace.disabled_server_tools?.join(', ') ?? NONE],
                ['Prompt caching', workspace.prompt_caching ?? 'account default'],
                ['Endpoints ordered by', workspace.default_provider_sort ?? 'the configuration'],
                [
                  'Prompts and answers',
                  workspace.is_observability_io_logging_enabled
                    ? `kept, ${workspace.io_logging_sampling_rate * 100}% of requests`
                    : 'not kept',
                ],
                [
                  'Destinations',
                  <a key="destinations" href={link('/destinations', { workspace: workspace.id })}>
                    {workspace.is_observability_broadcast_enabled
                      ? 'Generations are forwarded'
                      : 'Nothing is forwarded'}
                  </a>,
                ],
                [
                  'Guardrail',
                  <a key="guardrail" href={link(`/guardrails/${workspace.default_guardrail_id}`)}>
                    Of the whole workspace
                  </a>,
                ],
                [
                  'Keys',
                  <a key="keys" href={link('/keys', { workspace: workspace.id })}>
                    Its keys
                  </a>,
                ],
                [
                  'Requests',
                  <a key="requests" href={link('/requests', { workspace_id: workspace.id })}>
                    Its requests
                  </a>,
                ],
                ['Created', <Time key="created" at={workspace.created_at} exact />],
              ]}
            />
          </Card>
          <div class="columns">
            <Budgets id={workspace.id} />
            <Members id={workspace.id} />
          </div>
          {action === 'edit' && <EditWorkspace workspace={workspace} onClose={() => setAction(undefined)} />}
          {action === 'delete' && (
            <Confirm
              title={`Delete ${workspace.name}?`}
              action="Delete the workspace"
              word={workspace.slug}
              change={remove}
              onClose={() => setAction(undefined)}
            >
              <p>This cannot be undone. Lost are its</p>
              <ul>
                <li>budgets, members, guardrails and presets,</li>
                <li>BYOK credentials, secrets, files and destinations,</li>
                <li>batches with their results.</li>
              </ul>
              <p>Records of what was spent stay. A workspace with active keys cannot be deleted.</p>
            </Confirm>
          )}
        </>
      )}
    </Page>
  );
}

function Budgets({ id }: { id: string }) {
  const { data, error } = useApi('GET /workspaces/{workspace_ref}/budgets', { path: { workspace_ref: id } });
  const [editing, setEditing] = useState<Interval>();
  const budgetOf = (interval: Interval) => data?.data.find((each) => each.reset_interval === interval);
  return (
    <Card title="Budgets" flush>
      <Problem error={error} />
      <Table
        label="Budgets"
        rows={INTERVALS.map((interval) => ({ interval, budget: budgetOf(interval) }))}
        keyOf={({ interval }) => interval}
        columns={[
          { head: 'Interval', cell: ({ interval }) => interval },
          {
            head: 'Limit',
            end: true,
            cell: ({ budget }) => (budget === undefined ? <span class="soft">none</span> : usd(budget.limit_usd)),
          },
          {
            head: 'Change',
            end: true,
            cell: ({ interval, budget }) => (
              <Button kind="quiet" onClick={() => setEditing(interval)}>
                {budget === undefined ? 'Set' : 'Change'}
                <span class="unseen"> the {interval} budget</span>
              </Button>
            ),
          },
        ]}
      />
      {editing !== undefined && (
        <EditBudget
          id={id}
          interval={editing}
          limit={budgetOf(editing)?.limit_usd}
          byok={data?.include_byok_in_budgets ?? false}
          onClose={() => setEditing(undefined)}
        />
      )}
    </Card>
  );
}

function Members({ id }: { id: string }) {
  const members = useAll('GET /workspaces/{id}/members', { path: { id } });
  const everybody = useAll('GET /organization/members');
  const [adding, setAdding] = useState('');
  const stale = ['GET /workspaces/{id}/members'] as const;
  const add = useChange(
    () => api('POST /workspaces/{id}/members/add', { path: { id }, body: { user_ids: [adding] } }),
    stale,
    () => setAdding(''),
  );
  const remove = useChange(
    (user: string) => api('POST /workspaces/{id}/members/remove', { path: { id }, body: { user_ids: [user] } }),
    stale,
  );
  const named = new Map(
    (everybody.data?.rows ?? []).map((each) => [
      each.id,
      [each.first_name, each.last_name].filter(Boolean).join(' ') || each.email,
    ]),
  );
  const rows = members.data?.rows ?? [];
  const others = [...named].filter(([user]) => !rows.some((row) => row.user_id === user));
  return (
    <Card title="Members" flush>
      <Problem error={members.error ?? add.error ?? remove.error} />
      {members.data === undefined ? (
        <Waiting lines={2} />
      ) : rows.length === 0 ? (
        <Empty icon="scim" title="No members">
          <p>Add one of the organization.</p>
        </Empty>
      ) : (
        <Table
          label="Members"
          rows={rows}
          keyOf={({ id: row }) => row}
          columns={[
            { head: 'Name', cell: (row) => named.get(row.user_id) ?? row.user_id },
            { head: 'Role', cell: (row) => <Badge>{row.role}</Badge> },
            {
              head: 'Change',
              end: true,
              cell: (row) => (
                <Button kind="quiet" busy={remove.isPending} onClick={() => remove.mutate(row.user_id)}>
                  Remove<span class="unseen"> {named.get(row.user_id)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      {others.length > 0 && (
        <form
          class="inline pad"
          onSubmit={(event) => {
            event.preventDefault();
            if (adding !== '') add.mutate(undefined);
          }}
        >
          <Choice label="Add" value={adding} options={[['', 'Choose a member'], ...others]} onChange={setAdding} />
          <Button type="submit" disabled={adding === ''} busy={add.isPending}>
            Add
          </Button>
        </form>
      )}
    </Card>
  );
}

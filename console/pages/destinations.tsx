/** Destinations: the systems that get a record of every generation, how delivery to them goes, and what they are sent. */
import { useState } from 'preact/hooks';
import type { ApiDestination } from '../api.gen.ts';
import { api } from '../api.ts';
import { memberLabel } from '../destinations/config-form.tsx';
import { DETAILS, EditDestination, REGIONS } from '../destinations/edit.tsx';
import { groupText } from '../destinations/rules-form.tsx';
import type { PageParts } from '../frame.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Empty, Facts, Note, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { count, NONE, percent } from '../ui/format.ts';
import { Confirm } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 50;
const LIVE_MS = 5_000;
const STALE = ['GET /observability/destinations', 'GET /observability/destinations/{id}'] as const;

export function Destinations({ rest }: PageParts) {
  return rest === '' ? <DestinationList /> : <DestinationDetail key={rest} id={rest} />;
}

function DestinationList() {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = params.get('workspace') ?? '';
  const reading = useApi(
    'GET /observability/destinations',
    { query: { offset, limit: PAGE, ...inWorkspace(workspace) } },
    { every: LIVE_MS },
  );
  const rows = reading.data?.data;
  return (
    <Page
      title="Destinations"
      about="Systems that get a record of every generation of a workspace."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'destination' })}>
          Add a destination
        </Button>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
      </search>
      {rows?.[0] !== undefined && <Forwarding workspace={rows[0].workspace_id} />}
      <PagedList
        label="Destinations"
        reading={reading}
        rows={rows}
        empty={
          <Empty icon="destinations" title="No destinations">
            <p>Add one to forward generations to your tracing, analytics or storage.</p>
          </Empty>
        }
        pages={{ size: PAGE, total: reading.data?.total_count }}
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/destinations/${id}`)}
        columns={[
          { head: 'Name', cell: (each) => <span class="clip">{each.name}</span> },
          { head: 'Type', cell: ({ type }) => type },
          { head: 'State', cell: (each) => <DeliveryState destination={each} /> },
          { head: 'Delivered', end: true, minor: true, cell: ({ delivery }) => count(delivery.delivered) },
          { head: 'Waiting', end: true, cell: ({ delivery }) => count(delivery.waiting) },
          { head: 'Dropped', end: true, cell: ({ delivery }) => count(delivery.dropped) },
          {
            head: 'Last error',
            minor: true,
            cell: ({ delivery }) => <span class="clip soft">{delivery.last_error ?? ''}</span>,
          },
        ]}
      />
      {params.get('new') === 'destination' && (
        <EditDestination
          workspace={workspace}
          onClose={() => set({ new: undefined }, true)}
          onSaved={({ id }) => go(link(`/destinations/${id}`), true)}
        />
      )}
    </Page>
  );
}

const STATES = {
  delivering: { tone: 'good', label: 'Delivering' },
  failing: { tone: 'bad', label: 'Failing' },
  idle: { tone: 'plain', label: 'Nothing sent yet' },
} as const;

function DeliveryState({ destination: { enabled, delivery } }: { destination: ApiDestination }) {
  if (!enabled) return <Badge>Disabled</Badge>;
  const { tone, label } = STATES[delivery.status as keyof typeof STATES] ?? { tone: 'plain', label: delivery.status };
  return <Badge tone={tone}>{label}</Badge>;
}

/** Says that the workspace forwards nothing, where that is so, and turns it on. */
function Forwarding({ workspace: id }: { workspace: string }) {
  const { data } = useApi('GET /workspaces/{id}', { path: { id } });
  const change = useChange(
    () => api('PATCH /workspaces/{id}', { path: { id }, body: { is_observability_broadcast_enabled: true } }),
    ['GET /workspaces', 'GET /workspaces/{id}'],
  );
  if (data === undefined || data.data.is_observability_broadcast_enabled) return null;
  return (
    <Note tone="warn">
      <p>The workspace {data.data.name} does not forward its generations, so its destinations get nothing.</p>
      <Problem error={change.error} />
      <Button busy={change.isPending} onClick={() => change.mutate(undefined)}>
        Turn forwarding on
      </Button>
    </Note>
  );
}

function DestinationDetail({ id }: { id: string }) {
  const { data, error, refetch } = useApi('GET /observability/destinations/{id}', { path: { id } }, { every: LIVE_MS });
  const [action, setAction] = useState<'edit' | 'delete'>();
  const destination = data?.data;
  const close = () => setAction(undefined);
  const toggle = useChange(
    (enabled: boolean) => api('PATCH /observability/destinations/{id}', { path: { id }, body: { enabled } }),
    STALE,
  );
  const trial = useChange(() => api('POST /observability/destinations/{id}/test', { path: { id } }));
  return (
    <Page
      title={destination?.name ?? 'Destination'}
      about={destination?.type}
      actions={
        destination && (
          <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')}>
            <Button busy={trial.isPending} onClick={() => trial.mutate(undefined)}>
              Send a test event
            </Button>
            <Button busy={toggle.isPending} onClick={() => toggle.mutate(!destination.enabled)}>
              {destination.enabled ? 'Disable' : 'Enable'}
            </Button>
          </ItemActions>
        )
      }
    >
      <Problem error={error} retry={() => void refetch()} />
      <Problem error={toggle.error ?? trial.error} />
      {trial.data !== undefined && <TestResult {...trial.data.data} />}
      {destination === undefined ? (
        error === null && <Waiting />
      ) : (
        <>
          <Forwarding workspace={destination.workspace_id} />
          <Delivery destination={destination} />
          <div class="columns">
            <Connection destination={destination} />
            <Selected destination={destination} />
          </div>
          {action === 'edit' && <EditDestination destination={destination} onClose={close} onSaved={close} />}
          {action === 'delete' && <DeleteDestination destination={destination} onClose={close} />}
        </>
      )}
    </Page>
  );
}

function TestResult({ accepted, error }: { accepted: boolean; error: string | null }) {
  return (
    <div role="status">
      <Note tone={accepted ? 'good' : 'bad'}>
        {accepted ? 'The destination accepted the test event.' : `The test event failed: ${error}.`}
      </Note>
    </div>
  );
}

function Delivery({ destination }: { destination: ApiDestination }) {
  const { delivered, waiting, dropped, delivered_at, failed_at, last_error } = destination.delivery;
  return (
    <Card title="Delivery" actions={<DeliveryState destination={destination} />}>
      {last_error !== null && (
        <Note tone={destination.delivery.status === 'failing' ? 'bad' : 'info'}>
          <p>
            {last_error} (<Time at={failed_at} exact />)
          </p>
        </Note>
      )}
      <Facts
        rows={[
          ['Delivered', count(delivered)],
          ['Waiting in the database', count(waiting)],
          ['Dropped', count(dropped)],
          ['Last delivery', <Time key="delivered" at={delivered_at} exact />],
          ['Created', <Time key="created" at={destination.created_at} exact />],
        ]}
      />
    </Card>
  );
}

function Connection({ destination: { config } }: { destination: ApiDestination }) {
  const { headers = {}, ...members } = config;
  const shown = [
    ...Object.entries(members).map(([name, value]) => [memberLabel(name), value] as const),
    ...Object.entries(headers as object).map(([name, value]) => [`Header ${name}`, value as unknown] as const),
  ];
  return (
    <Card title="Connection">
      <Facts
        rows={shown.map(([label, value]) => [
          label,
          <span key={label} class="mono small">
            {String(value)}
          </span>,
        ])}
      />
    </Card>
  );
}

function Selected({ destination }: { destination: ApiDestination }) {
  const { api_key_hashes: keys, regions, sampling_rate, filter_rules, privacy_mode, workspace_id } = destination;
  const rules = filter_rules?.enabled === false ? [] : (filter_rules?.groups ?? []);
  const details = DETAILS.filter(([member]) => destination[member]);
  return (
    <Card title="What is sent" actions={<a href={link(`/workspaces/${workspace_id}`)}>The workspace</a>}>
      <Facts
        rows={[
          ['Sessions', sampling_rate === 1 ? 'all' : percent(sampling_rate)],
          ['Served in', REGIONS.flatMap(([region, label]) => (regions.includes(region) ? label : [])).join(', ')],
          ['Keys', keys === null ? 'all' : count(keys.length)],
          ['Rules', rules.length === 0 ? NONE : rules.map((group) => <p key={groupText(group)}>{groupText(group)}</p>)],
          ['Inputs and outputs', privacy_mode ? 'never' : 'where the workspace keeps them'],
          ['Besides', details.length === 0 ? NONE : details.map(([member, label]) => <p key={member}>{label}</p>)],
        ]}
      />
    </Card>
  );
}

function DeleteDestination({ destination, onClose }: { destination: ApiDestination; onClose(): void }) {
  const { id, name, delivery } = destination;
  const change = useChange(
    () => api('DELETE /observability/destinations/{id}', { path: { id } }),
    ['GET /observability/destinations'],
    () => go(link('/destinations')),
  );
  return (
    <Confirm title={`Delete ${name}?`} action="Delete the destination" word={name} change={change} onClose={onClose}>
      <p>This cannot be undone.</p>
      <ul>
        <li>
          {delivery.waiting === 0
            ? 'Records that wait for delivery are lost. At the moment none wait in the database.'
            : `${count(delivery.waiting)} records that wait for delivery are lost.`}
        </li>
        <li>Its secrets, filters and counts are lost.</li>
        <li>The {count(delivery.delivered)} records that were delivered stay at the destination.</li>
      </ul>
    </Confirm>
  );
}

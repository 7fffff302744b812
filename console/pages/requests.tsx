/** The explorer of requests: filters in the address, pages from the server, one request in full. */
import type { ApiGenerationSummary } from '../api.gen.ts';
import type { PageParts } from '../frame.tsx';
import { useApi } from '../query.ts';
import { link, useParams } from '../route.ts';
import { Badge, Button, Empty, Page, Time } from '../ui/basics.tsx';
import { Filter } from '../ui/filter.tsx';
import { count, duration, usd } from '../ui/format.ts';
import { Choice, type Option } from '../ui/forms.tsx';
import { PagedList, useCursor } from '../ui/list.tsx';
import { RequestDetail } from './request-detail.tsx';

const HOUR_MS = 3_600_000;
const SINCE: readonly Option[] = [
  ['', 'Any time'],
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
  ['720', 'Last 30 days'],
];
const OUTCOMES: readonly Option[] = [
  ['', 'Any outcome'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
  ['guarded', 'Guardrail matched'],
];
/** Parameters of the address that the operation has by the same names. */
const QUERY_FILTERS = [
  'model',
  'provider',
  'workspace_id',
  'session_id',
  'external_user',
  'error_type',
  'outcome',
  'id',
];
const LIVE_MS = 5_000;
const MINUTE_MS = 60_000;

export function Requests({ rest }: PageParts) {
  return rest === '' ? <RequestList /> : <RequestDetail key={rest} id={rest} />;
}

function RequestList() {
  const { params, set } = useParams();
  const value = (name: string) => params.get(name) ?? '';
  const hours = Number(value('since'));
  const start = hours > 0 ? new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - hours * HOUR_MS) : undefined;
  const cursor = useCursor();
  const reading = useApi(
    'GET /generations',
    {
      query: {
        ...Object.fromEntries(QUERY_FILTERS.flatMap((name) => (value(name) === '' ? [] : [[name, value(name)]]))),
        ...(value('key') !== '' && { api_key_id: value('key') }),
        ...(start && { start: start.toISOString() }),
        ...(cursor && { cursor }),
      },
    },
    { every: cursor === undefined && value('live') === 'on' ? LIVE_MS : undefined },
  );
  const filter = (name: string, label: string) => (
    <Filter label={label} value={value(name)} onValue={(text) => set({ [name]: text }, true)} />
  );
  const filtered = [...params.keys()].some((name) => name !== 'live');
  return (
    <Page
      title="Requests"
      about="Every request that reached a model or was blocked, newest first."
      actions={
        <Button kind="quiet" onClick={() => set({ live: value('live') === 'on' ? undefined : 'on' }, true)}>
          <span class={value('live') === 'on' ? 'dot live' : 'dot'} /> Live
        </Button>
      }
    >
      <search class="filters">
        <Choice label="Time" value={value('since')} options={SINCE} onChange={(since) => set({ since }, true)} />
        <Choice
          label="Outcome"
          value={value('outcome')}
          options={OUTCOMES}
          onChange={(outcome) => set({ outcome }, true)}
        />
        {filter('model', 'Model')}
        {filter('provider', 'Provider')}
        {filter('key', 'Key (hash)')}
        {filter('session_id', 'Session')}
        {filter('external_user', 'End user')}
        {filter('error_type', 'Error type')}
        {filter('id', 'Request id')}
      </search>
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        lines={10}
        empty={
          <Empty icon="requests" title={filtered ? 'No request fits these filters' : 'No requests yet'}>
            {filtered ? (
              <a href={link('/requests')}>Remove the filters</a>
            ) : (
              <a href={link('/playground')}>Send the first one in the playground</a>
            )}
          </Empty>
        }
        pages={{ next: reading.data?.next_cursor }}
        label="Requests"
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/requests/${id}`)}
        columns={[
          { head: 'Time', cell: (row) => <Time at={row.created_at} exact /> },
          { head: 'Outcome', cell: (row) => <OutcomeBadge row={row} /> },
          { head: 'Model', cell: (row) => <span class="mono clip">{row.model}</span> },
          { head: 'Provider', minor: true, cell: (row) => row.provider_name ?? '–' },
          { head: 'Key', minor: true, cell: (row) => <span class="clip short">{row.api_key?.name ?? 'deleted'}</span> },
          { head: 'Tokens', end: true, cell: (row) => tokensOf(row) },
          { head: 'First token', end: true, minor: true, cell: (row) => duration(row.latency) },
          { head: 'Cost', end: true, cell: (row) => usd(row.total_cost) },
        ]}
      />
    </Page>
  );
}

function tokensOf({ tokens_prompt, tokens_completion }: ApiGenerationSummary): string {
  if (tokens_prompt === null) return '–';
  return `${count(tokens_prompt)} → ${count(tokens_completion)}`;
}

export function OutcomeBadge({ row }: { row: ApiGenerationSummary }) {
  const marks = row.guardrail_marks > 0 && <Badge tone="warn">Guardrail</Badge>;
  if (row.error !== null || (row.status ?? 0) >= 400) {
    return (
      <span class="badges">
        <Badge tone="bad">
          {row.status ?? 'Failed'} {row.error?.type.replaceAll('_', ' ')}
        </Badge>
        {marks}
      </span>
    );
  }
  return (
    <span class="badges">
      {row.cancelled ? <Badge tone="warn">Cancelled</Badge> : <Badge tone="good">{row.status ?? 'OK'}</Badge>}
      {marks}
    </span>
  );
}

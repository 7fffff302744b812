/** The state of the gateway: readiness, problems, load, processes, findings of the doctor, and what is configured. */
import { type UseQueryResult, useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import type { ApiReadyStatus, ApiSystemFindings, ApiSystemProcesses } from '../api.gen.ts';
import { type ApiError, type ApiName, type Reply, root } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { areSettled, useApi } from '../query.ts';
import { Badge, Button, Card, Code, Facts, Note, Page, Problem, Time, type Tone, Waiting } from '../ui/basics.tsx';
import { bytes, count, duration, NONE, usd } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';

const LIVE_MS = 5_000;
const SECOND_MS = 1_000;

/** What `useApi` returns, as far as a card needs it. */
type Read<N extends ApiName> = Pick<UseQueryResult<Reply<N>, ApiError>, 'data' | 'error'>;

export function System(_: PageParts) {
  const ready = useQuery<ApiReadyStatus, ApiError>({
    queryKey: ['ready'],
    queryFn: ({ signal }) => root('GET /ready', { signal }),
    refetchInterval: LIVE_MS,
  });
  const metrics = useQuery<Metrics, ApiError>({
    queryKey: ['metrics'],
    queryFn: async ({ signal }) => new Metrics(String(await root('GET /metrics', { signal }))),
    refetchInterval: LIVE_MS,
  });
  const credits = useApi('GET /credits');
  const providers = useApi('GET /providers');
  const processes = useApi('GET /system/processes', {}, { every: LIVE_MS });
  const version = useQuery<string, ApiError>({
    queryKey: ['version'],
    queryFn: async () => (await root('GET /console/session')).data.version,
  });
  return (
    <Page title="System" about="How this gateway is doing. Figures are of all of its processes.">
      {areSettled(ready, metrics, credits, providers, processes, version) ? (
        <>
          <Health ready={ready} credits={credits.data} version={version.data} />
          <Card title="Load">
            <Problem error={metrics.error} />
            {metrics.data !== undefined && <Load metrics={metrics.data} />}
          </Card>
          <Processes reading={processes} />
          <div class="columns">
            <Providers reading={providers} />
            <Card title="Change settings">
              <div class="stack">
                <p class="soft">
                  A changed <code>gatehouse.yaml</code> is read without a restart:
                </p>
                <Code label="command to reload" text="kill -HUP <process>" />
              </div>
            </Card>
          </div>
          <Doctor />
        </>
      ) : (
        <Waiting lines={12} />
      )}
    </Page>
  );
}

interface HealthProps {
  ready: Pick<UseQueryResult<ApiReadyStatus, ApiError>, 'data' | 'error' | 'refetch'>;
  credits: Reply<'GET /credits'> | undefined;
  version: string | undefined;
}

function Health({ ready, credits, version }: HealthProps) {
  return (
    <Card
      title="Health"
      actions={
        ready.data === undefined ? (
          <Badge>{ready.error ? 'Not ready' : 'Checking'}</Badge>
        ) : (
          <Badge tone={ready.data.status === 'ok' ? 'good' : 'warn'}>
            {ready.data.status === 'ok' ? 'Serving' : 'Degraded'}
          </Badge>
        )
      }
    >
      <Problem error={ready.error} retry={() => void ready.refetch()} />
      {ready.data?.problems?.map((problem) => (
        <Note key={problem} tone="warn">
          {problem}
        </Note>
      ))}
      <Facts
        rows={[
          ['Version', version ?? NONE],
          [
            'Balance',
            credits === undefined
              ? NONE
              : credits.data.unlimited
                ? 'no limit'
                : usd(credits.data.total_credits - credits.data.total_usage),
          ],
          ['Spent in all', usd(credits?.data.total_usage)],
        ]}
      />
    </Card>
  );
}

function Providers({ reading: { data, error } }: { reading: Read<'GET /providers'> }) {
  return (
    <Card title="Providers" flush>
      <Problem error={error} />
      {data !== undefined && (
        <Table
          label="Providers"
          rows={data.data}
          keyOf={({ slug }) => slug}
          columns={[
            { head: 'Name', cell: (each) => each.name },
            { head: 'Slug', cell: (each) => <span class="mono small">{each.slug}</span> },
          ]}
        />
      )}
    </Card>
  );
}

const STATES: Readonly<Record<ApiSystemProcesses['data'][number]['state'], readonly [Tone, string]>> = {
  live: ['good', 'Live'],
  gone: ['bad', 'No heartbeat'],
  replayed: ['warn', 'Died, cost unknown'],
};

function Processes({ reading: { data, error } }: { reading: Read<'GET /system/processes'> }) {
  return (
    <Card title="Processes" flush>
      <Problem error={error} />
      {data !== undefined && (
        <Table
          label="Processes of the gateway"
          rows={data.data}
          keyOf={({ id }) => id}
          columns={[
            {
              head: 'Process',
              cell: ({ id, is_this }) => (
                <span class="badges">
                  <span class="mono small">{id}</span>
                  {is_this && <Badge tone="info">This process</Badge>}
                </span>
              ),
            },
            {
              head: 'State',
              cell: ({ state }) => <Badge tone={STATES[state][0]}>{STATES[state][1]}</Badge>,
            },
            { head: 'Host', minor: true, cell: ({ host }) => host ?? NONE },
            { head: 'Version', minor: true, cell: ({ version }) => version ?? NONE },
            { head: 'Started', cell: ({ started_at }) => <Time at={started_at} /> },
            { head: 'Last seen', minor: true, cell: ({ seen_at }) => <Time at={seen_at} /> },
          ]}
        />
      )}
    </Card>
  );
}

const LEVELS: Readonly<Record<ApiSystemFindings['data'][number]['level'], readonly [Tone, string]>> = {
  fault: ['bad', 'Fault'],
  note: ['warn', 'Note'],
  ok: ['good', 'OK'],
};
const ORDER = Object.keys(LEVELS);

/** Findings of `gatehouse doctor`; providers and the bucket only on request, since these checks call other services. */
function Doctor() {
  const [online, setOnline] = useState(false);
  const { data, error, isFetching, refetch } = useApi('GET /system/findings', { query: { online } });
  const rows = data?.data.toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  return (
    <Card
      title="Doctor"
      flush
      actions={
        <Button
          icon="refresh"
          busy={isFetching && data !== undefined}
          onClick={() => (online ? void refetch() : setOnline(true))}
        >
          {online ? 'Check again' : 'Check providers too'}
        </Button>
      }
    >
      <Problem error={error} />
      {rows === undefined ? (
        error === null && <Waiting lines={6} />
      ) : (
        <Table
          label="Findings of the doctor"
          rows={rows.map((finding, at) => ({ ...finding, at }))}
          keyOf={({ at }) => String(at)}
          columns={[
            { head: 'Result', cell: ({ level }) => <Badge tone={LEVELS[level][0]}>{LEVELS[level][1]}</Badge> },
            { head: 'Area', minor: true, cell: ({ area }) => area },
            {
              head: 'Finding',
              cell: ({ message, advice }) => (
                <div>
                  {message}
                  {advice !== null && <div class="soft small">{advice}</div>}
                </div>
              ),
            },
          ]}
        />
      )}
    </Card>
  );
}

function Load({ metrics }: { metrics: Metrics }) {
  const started = metrics.least('gatehouse_process_start_time_seconds') ?? metrics.least('process_start_time_seconds');
  return (
    <Facts
      rows={[
        ['Processes', count(metrics.sum('gatehouse_processes'))],
        ['Running for', started === undefined ? NONE : duration(Date.now() - started * SECOND_MS)],
        ['Open requests', count(metrics.sum('open_requests'))],
        ['Rows waiting for the database', count(metrics.sum('waiting_rows'))],
        ['Database', stateOf(metrics.least('gatehouse_database_up'), 'reached by every process', 'not reached')],
        [
          'Stored credentials',
          stateOf(metrics.least('gatehouse_credentials_open'), 'decrypted', 'cannot be decrypted'),
        ],
        ['Journal', bytes(metrics.sum('journal_bytes'))],
        ['Memory', bytes(metrics.sum('process_resident_memory_bytes'))],
        [
          'Event loop delay, p99',
          metrics.most('eventloop_lag_p99_seconds') === undefined
            ? NONE
            : duration((metrics.most('eventloop_lag_p99_seconds') ?? 0) * SECOND_MS),
        ],
      ]}
    />
  );
}

function stateOf(value: number | undefined, good: string, bad: string) {
  if (value === undefined) return NONE;
  return <Badge tone={value === 1 ? 'good' : 'bad'}>{value === 1 ? good : bad}</Badge>;
}

/** The Prometheus text of `GET /metrics`. */
class Metrics {
  readonly #lines: readonly (readonly [name: string, value: number])[];

  constructor(text: string) {
    this.#lines = text.split('\n').flatMap((line) => {
      const [, name, value] = /^([a-zA-Z_:]\w*)(?:\{.*\})? (\S+)/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(value)] as const];
    });
  }

  #values(end: string): number[] {
    return this.#lines.filter(([name]) => name.endsWith(end)).map(([, value]) => value);
  }

  sum(end: string): number | undefined {
    const values = this.#values(end);
    return values.length === 0 ? undefined : values.reduce((all, value) => all + value, 0);
  }

  most(end: string): number | undefined {
    const values = this.#values(end);
    return values.length === 0 ? undefined : Math.max(...values);
  }

  least(end: string): number | undefined {
    const values = this.#values(end);
    return values.length === 0 ? undefined : Math.min(...values);
  }
}

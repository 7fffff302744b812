/** The state of the gateway: readiness, problems, processes, load, and what is configured. */
import { useQuery } from '@tanstack/preact-query';
import type { ApiReadyStatus } from '../api.gen.ts';
import { type ApiError, root } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { useApi } from '../query.ts';
import { Badge, Card, Code, Facts, Note, Page, Problem, Waiting } from '../ui/basics.tsx';
import { bytes, count, duration, NONE, usd } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';

const LIVE_MS = 5_000;
const SECOND_MS = 1_000;

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
  const problems = ready.data?.problems ?? [];
  const version = useQuery({
    queryKey: ['version'],
    queryFn: async () => (await root('GET /console/session')).data.version,
  });
  return (
    <Page title="System" about="How this gateway is doing. Figures are of all of its processes.">
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
        {problems.map((problem) => (
          <Note key={problem} tone="warn">
            {problem}
          </Note>
        ))}
        <Facts
          rows={[
            ['Version', version.data ?? NONE],
            [
              'Balance',
              credits.data === undefined
                ? NONE
                : credits.data.data.unlimited
                  ? 'no limit'
                  : usd(credits.data.data.total_credits - credits.data.data.total_usage),
            ],
            ['Spent in all', usd(credits.data?.data.total_usage)],
          ]}
        />
      </Card>
      <Card title="Load">
        {metrics.error !== null ? (
          <Problem error={metrics.error} />
        ) : metrics.data === undefined ? (
          <Waiting lines={3} />
        ) : (
          <Load metrics={metrics.data} />
        )}
      </Card>
      <div class="columns">
        <Card title="Providers" flush>
          {providers.data === undefined ? (
            <Waiting lines={3} />
          ) : (
            <Table
              label="Providers"
              rows={providers.data.data}
              keyOf={({ slug }) => slug}
              columns={[
                { head: 'Name', cell: (each) => each.name },
                { head: 'Slug', cell: (each) => <span class="mono small">{each.slug}</span> },
              ]}
            />
          )}
        </Card>
        <Card title="On the machine">
          <div class="stack">
            <p class="soft">
              The doctor checks settings, the database and every provider, and says how to repair what it finds.
            </p>
            <Code label="command" text="npx gatehouse doctor" />
            <p class="soft">
              A changed <code>gatehouse.yaml</code> is read without a restart:
            </p>
            <Code label="command to reload" text="kill -HUP <process>" />
          </div>
        </Card>
      </div>
    </Page>
  );
}

function Load({ metrics }: { metrics: Metrics }) {
  const started = metrics.least('gatehouse_process_start_time_seconds') ?? metrics.least('process_start_time_seconds');
  return (
    <Facts
      rows={[
        ['Processes', count(metrics.sum('gatehouse_processes'))],
        ['Running since', started === undefined ? NONE : duration(Date.now() - started * SECOND_MS)],
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

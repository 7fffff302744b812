/** Spend, requests, tokens, errors, latency and throughput over time, by what the viewer chooses. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { PageParts } from '../frame.tsx';
import { useApi } from '../query.ts';
import { link, useParams } from '../route.ts';
import { Button, Card, Empty, Page, Problem } from '../ui/basics.tsx';
import { Chart, type Series } from '../ui/chart.tsx';
import { count, duration, NONE, percent, usd } from '../ui/format.ts';
import { Choice, Segments } from '../ui/forms.tsx';
import { Table } from '../ui/table.tsx';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

interface Range {
  label: string;
  ms: number;
  granularity: 'minute' | 'hour' | 'day';
  bucketMs: number;
}

const RANGES: Readonly<Record<string, Range>> = {
  '1h': { label: '1 hour', ms: HOUR_MS, granularity: 'minute', bucketMs: MINUTE_MS },
  '24h': { label: '24 hours', ms: DAY_MS, granularity: 'hour', bucketMs: HOUR_MS },
  '7d': { label: '7 days', ms: 7 * DAY_MS, granularity: 'hour', bucketMs: HOUR_MS },
  '30d': { label: '30 days', ms: 30 * DAY_MS, granularity: 'day', bucketMs: DAY_MS },
};
const DEFAULT_RANGE = '24h';

interface Figure {
  label: string;
  metrics: readonly string[];
  format(value: number | null | undefined): string;
  /** Values of groups add up. */
  sums: boolean;
  /** More of it is worse. */
  isBad?: boolean;
}

const FIGURES: Readonly<Record<string, Figure>> = {
  total_usage: { label: 'Spend', metrics: ['total_usage'], format: usd, sums: true },
  request_count: { label: 'Requests', metrics: ['request_count'], format: count, sums: true },
  tokens_total: { label: 'Tokens', metrics: ['tokens_total'], format: count, sums: true },
  error_count: { label: 'Errors', metrics: ['error_count'], format: count, sums: true, isBad: true },
  latency_p50: {
    label: 'First token',
    metrics: ['latency_p50', 'latency_p95'],
    format: duration,
    sums: false,
    isBad: true,
  },
  throughput: {
    label: 'Tokens/s',
    metrics: ['throughput'],
    format: (value) => (value == null ? NONE : value.toFixed(1)),
    sums: false,
  },
};

const DIMENSIONS = [
  ['', 'Total'],
  ['model', 'Model'],
  ['provider', 'Provider'],
  ['api_key_id', 'Key'],
  ['workspace', 'Workspace'],
  ['error_type', 'Error'],
] as const;

/** Further groups are added up as "Other". */
const MOST_GROUPS = 6;
const LIVE_MS = 5_000;
const ALL_METRICS = [
  'total_usage',
  'request_count',
  'tokens_total',
  'tokens_prompt',
  'tokens_completion',
  'error_count',
  'error_rate',
  'latency_p50',
  'latency_p95',
  'throughput',
  'cache_hit_rate',
  'active_keys',
];

type Row = Record<string, string | number | boolean | null>;

/** The end of the shown time; moves on while the page is live. */
function useNow(stepMs: number): number {
  const read = () => Math.ceil(Date.now() / stepMs) * stepMs;
  const [now, setNow] = useState(read);
  useEffect(() => {
    setNow(read());
    const timer = setInterval(() => setNow(read()), LIVE_MS);
    return () => clearInterval(timer);
  }, [stepMs]);
  return now;
}

export function Overview(_: PageParts) {
  const { params, set } = useParams();
  const rangeName = params.get('range') ?? DEFAULT_RANGE;
  const range = RANGES[rangeName] ?? RANGES[DEFAULT_RANGE]!;
  const by = params.get('by') ?? '';
  const metric = FIGURES[params.get('metric') ?? ''] === undefined ? 'total_usage' : (params.get('metric') ?? '');
  const figure = FIGURES[metric]!;
  const paused = params.get('live') === 'off';
  const now = useNow(range.bucketMs === DAY_MS ? HOUR_MS : MINUTE_MS);
  const every = paused ? undefined : LIVE_MS;
  const span = (endMs: number) => ({
    start: new Date(endMs - range.ms).toISOString(),
    end: new Date(endMs).toISOString(),
  });
  const totals = useApi('POST /analytics/query', { body: { metrics: ALL_METRICS, time_range: span(now) } }, { every });
  const before = useApi('POST /analytics/query', {
    body: { metrics: ALL_METRICS, time_range: span(now - range.ms) },
  });
  const total = totals.data?.data.data[0];
  const earlier = before.data?.data.data[0];
  return (
    <Page
      title="Overview"
      actions={
        <>
          <Segments
            label="Time range"
            value={rangeName}
            options={Object.entries(RANGES).map(([name, { label }]) => [name, label])}
            onChange={(value) => set({ range: value })}
          />
          <Button kind={paused ? 'plain' : 'quiet'} onClick={() => set({ live: paused ? undefined : 'off' }, true)}>
            <span class={paused ? 'dot' : 'dot live'} /> {paused ? 'Paused' : 'Live'}
          </Button>
        </>
      }
    >
      <Problem error={totals.error} retry={() => void totals.refetch()} />
      <fieldset class="tiles">
        <legend class="unseen">Figure in the chart</legend>
        {Object.entries(FIGURES).map(([name, { label, format, isBad }]) => (
          <label key={name} class="tile">
            <input type="radio" name="metric" checked={metric === name} onChange={() => set({ metric: name }, true)} />
            <span class="tile-label">{label}</span>
            <span class="tile-value">{total === undefined ? ' ' : format(total[name] as number | null)}</span>
            <Change now={total?.[name]} before={earlier?.[name]} isBad={isBad ?? false} />
          </label>
        ))}
      </fieldset>
      <Card
        title={`${figure.label} over time`}
        actions={
          <div class="inline">
            <Choice label="By" value={by} options={DIMENSIONS} onChange={(value) => set({ by: value }, true)} />
          </div>
        }
      >
        <OverTime range={range} now={now} by={by} figure={figure} name={metric} every={every} />
      </Card>
      <div class="columns">
        <Groups title="Models" dimension="model" range={span(now)} every={every} />
        <Groups title="Keys" dimension="api_key_id" range={span(now)} every={every} />
      </div>
      {total !== undefined && total['request_count'] === 0 && (
        <Empty icon="playground" title="No requests in this period">
          <p>
            <a href={link('/playground')}>Try a model in the playground</a>, or see{' '}
            <a href="../start">how to connect</a> an application.
          </p>
        </Empty>
      )}
    </Page>
  );
}

/** Compared to the same time before. */
function Change({ now, before, isBad }: { now: unknown; before: unknown; isBad: boolean }) {
  if (typeof now !== 'number' || typeof before !== 'number' || before === 0) return null;
  const share = (now - before) / before;
  const rises = share > 0;
  const tone = Math.abs(share) < 0.005 ? 'soft' : isBad ? (rises ? 'worse' : 'better') : 'soft';
  return (
    <span class={`tile-change ${tone}`}>
      {rises ? '+' : share < 0 ? '−' : ''}
      {percent(Math.abs(share))}
      <span class="unseen"> compared to the time before</span>
    </span>
  );
}

interface OverTimeProps {
  range: Range;
  now: number;
  by: string;
  figure: Figure;
  name: string;
  every: number | undefined;
}

function OverTime({ range, now, by, figure, name, every }: OverTimeProps) {
  const grouped = by !== '';
  const end = Math.ceil(now / range.bucketMs) * range.bucketMs;
  const start = end - range.ms;
  const metrics = grouped ? [name] : [...figure.metrics];
  const { data, error, refetch, isPlaceholderData } = useApi(
    'POST /analytics/query',
    {
      body: {
        metrics,
        granularity: range.granularity,
        time_range: { start: new Date(start).toISOString(), end: new Date(end).toISOString() },
        ...(grouped && { dimensions: [by] }),
      },
    },
    { every },
  );
  const rows = data?.data.data;
  const times = useMemo(
    () => Array.from({ length: range.ms / range.bucketMs }, (_, at) => start + at * range.bucketMs),
    [start, range],
  );
  const series = useMemo(
    () => seriesOf(rows ?? [], times, grouped ? by : undefined, metrics, figure),
    [rows, times, by],
  );
  if (error !== null) return <Problem error={error} retry={() => void refetch()} />;
  return (
    <div class={isPlaceholderData ? 'stale' : undefined}>
      <Chart
        label={`${figure.label} over time`}
        times={times}
        series={series}
        format={figure.format}
        bucketMs={range.bucketMs}
        sums={figure.sums}
        height={240}
      />
    </div>
  );
}

const METRIC_LABELS: Readonly<Record<string, string>> = { latency_p50: 'Median', latency_p95: '95th percentile' };

/** The server omits empty buckets; sums are 0 there, rates unknown. */
function seriesOf(
  rows: readonly Row[],
  times: readonly number[],
  dimension: string | undefined,
  metrics: readonly string[],
  figure: Figure,
): Series[] {
  const places = new Map(times.map((time, at) => [time, at]));
  const empty = () => times.map((): number | null => (figure.sums ? 0 : null));
  const found = new Map<string, (number | null)[]>();
  for (const row of rows) {
    const at = places.get(Date.parse(String(row['date'])));
    if (at === undefined) continue;
    for (const metric of metrics) {
      const label =
        dimension === undefined ? (METRIC_LABELS[metric] ?? figure.label) : String(row[dimension] ?? 'none');
      const values = found.get(label) ?? empty();
      values[at] = row[metric] as number | null;
      found.set(label, values);
    }
  }
  const sum = (values: readonly (number | null)[]) => values.reduce<number>((all, value) => all + (value ?? 0), 0);
  const ranked = [...found].map(([label, values]) => ({ label, values }));
  if (dimension !== undefined) ranked.sort((a, b) => sum(b.values) - sum(a.values));
  if (ranked.length === 0) return [{ label: figure.label, values: empty() }];
  if (ranked.length <= MOST_GROUPS || !figure.sums) return ranked.slice(0, MOST_GROUPS);
  const others = ranked.slice(MOST_GROUPS);
  const other = times.map((_, at) => others.reduce((all, { values }) => all + (values[at] ?? 0), 0));
  return [...ranked.slice(0, MOST_GROUPS), { label: 'Other', values: other }];
}

interface GroupsProps {
  title: string;
  dimension: string;
  range: { start: string; end: string };
  every: number | undefined;
}

const MOST_ROWS = 8;

function Groups({ title, dimension, range, every }: GroupsProps) {
  const { data, error, refetch } = useApi(
    'POST /analytics/query',
    {
      body: {
        metrics: ['total_usage', 'request_count', 'tokens_total', 'error_rate'],
        dimensions: [dimension],
        time_range: range,
        order_by: { field: 'total_usage', direction: 'desc' },
        limit: MOST_ROWS,
      },
    },
    { every },
  );
  const rows: readonly Row[] = data?.data.data ?? [];
  const filter = dimension === 'model' ? 'model' : 'key';
  return (
    <Card title={title} flush>
      <Problem error={error} retry={() => void refetch()} />
      {rows.length === 0 ? (
        <p class="soft pad">{data === undefined ? 'Loading' : 'Nothing in this time.'}</p>
      ) : (
        <Table
          label={title}
          rows={rows}
          keyOf={(row) => String(row[dimension])}
          linkOf={(row) => link('/requests', { [filter]: String(row[dimension] ?? '') })}
          columns={[
            {
              head: title.slice(0, -1),
              cell: (row) => <span class="mono clip">{String(row[dimension] ?? 'none')}</span>,
            },
            { head: 'Spend', end: true, cell: (row) => usd(row['total_usage'] as number) },
            { head: 'Requests', end: true, cell: (row) => count(row['request_count'] as number) },
            { head: 'Tokens', end: true, minor: true, cell: (row) => count(row['tokens_total'] as number) },
            { head: 'Errors', end: true, cell: (row) => percent(row['error_rate'] as number | null) },
          ]}
        />
      )}
    </Card>
  );
}

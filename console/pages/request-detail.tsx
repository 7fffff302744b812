/** One request in full: attempts, tokens, cost, guardrail marks, and its content where it was logged. */
import type { ApiGeneration, ApiGenerationContent } from '../api.gen.ts';
import { useApi } from '../query.ts';
import { Endpoints } from '../requests/endpoints.tsx';
import { Timeline } from '../requests/timeline.tsx';
import { link } from '../route.ts';
import { Badge, Card, Code, Copy, Facts, Note, Page, Problem, Time, Waiting } from '../ui/basics.tsx';
import { count, duration, NONE, usd } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { OutcomeBadge } from './requests.tsx';

type Generation = ApiGeneration['data'];
/** Members that the interface describes as open objects. */
type Open = Record<string, unknown>;

export function RequestDetail({ id }: { id: string }) {
  const full = useApi('GET /generation', { query: { id } });
  const listed = useApi('GET /generations', { query: { id, limit: 1 } });
  const summary = listed.data?.data[0];
  const generation = full.data?.data;
  return (
    <Page
      title="Request"
      about={
        <span class="inline mono">
          {id} <Copy text={id} label="Copy the id" />
        </span>
      }
      actions={<a href={link('/requests')}>All requests</a>}
    >
      <Problem error={full.error} retry={() => void full.refetch()} />
      {generation === undefined || summary === undefined ? (
        full.error === null && <Waiting lines={8} />
      ) : (
        <div class="stack">
          <Card title="Summary" actions={<OutcomeBadge row={summary} />}>
            {summary.error !== null && (
              <Note tone="bad">
                <p>{summary.error.message}</p>
              </Note>
            )}
            <Facts
              rows={[
                ['Time', <Time key="time" at={generation.created_at} exact />],
                [
                  'Model',
                  <a key="model" href={link('/requests', { model: generation.model })}>
                    {generation.model}
                  </a>,
                ],
                ['Provider', generation.provider_name ?? NONE],
                [
                  'Key',
                  summary.api_key === null ? (
                    'deleted'
                  ) : (
                    <a key="key" href={link(`/keys/${summary.api_key.hash}`)}>
                      {summary.api_key.name}
                    </a>
                  ),
                ],
                generation.preset_id !== null && ['Preset', <PresetName key="preset" generation={generation} />],
                ['Format', `${generation.api_type ?? NONE}${generation.streamed ? ', streamed' : ''}`],
                ['Finish', generation.finish_reason ?? NONE],
                ['Cost', usd(generation.total_cost)],
                generation.cache_discount !== null && ['Saved by prompt caching', usd(generation.cache_discount)],
                generation.upstream_inference_cost !== null && [
                  'Cost at the provider',
                  usd(generation.upstream_inference_cost),
                ],
                ['First token', duration(generation.latency)],
                ['Generation', duration(generation.generation_time)],
                ['Region', generation.data_region],
                generation.session_id !== null && [
                  'Session',
                  <a key="session" href={link('/requests', { session_id: generation.session_id })}>
                    {generation.session_id}
                  </a>,
                ],
                generation.external_user !== null && [
                  'End user',
                  <a key="user" href={link('/requests', { external_user: generation.external_user })}>
                    {generation.external_user}
                  </a>,
                ],
                generation.user_agent !== null && ['Client', generation.user_agent],
                [
                  'Request id',
                  <span key="request" class="mono">
                    {generation.request_id ?? NONE}
                  </span>,
                ],
              ]}
            />
          </Card>
          <div class="columns">
            <Tokens generation={generation} estimated={summary.estimated} />
            <Timeline generation={generation} />
          </div>
          <Endpoints generation={generation} />
          {generation.guardrails.length > 0 && <Marks marks={generation.guardrails as Open[]} />}
          <Content id={id} />
        </div>
      )}
    </Page>
  );
}

const MOST_PRESETS = 100;

/** Linked if the preset is among those that changed last. */
function PresetName({ generation: { preset_id: id, workspace_id: workspace } }: { generation: Generation }) {
  const { data } = useApi('GET /presets', {
    query: { limit: MOST_PRESETS, ...(workspace !== null && { workspace_id: workspace }) },
  });
  const slug = data?.data.find((each) => each.id === id)?.slug;
  if (slug === undefined) return <span class="mono small">{id}</span>;
  return <a href={link(`/presets/${encodeURIComponent(slug)}`, { workspace })}>{slug}</a>;
}

function Tokens({ generation, estimated }: { generation: Generation; estimated: boolean }) {
  const rows: [string, number | null][] = [
    ['Prompt', generation.tokens_prompt],
    ['of them from the cache', generation.native_tokens_cached],
    ['Completion', generation.tokens_completion],
    ['of them reasoning', generation.native_tokens_reasoning],
  ];
  const seconds = (generation.generation_time ?? 0) / 1_000;
  const rate = seconds > 0 && generation.tokens_completion ? generation.tokens_completion / seconds : null;
  return (
    <Card title="Tokens" actions={estimated && <Badge tone="warn">Estimated</Badge>}>
      <Facts
        rows={[
          ...rows.map(([name, value]) => [name, count(value)] as const),
          ['Per second', rate === null ? NONE : rate.toFixed(1)],
        ]}
      />
    </Card>
  );
}

function Marks({ marks }: { marks: readonly Open[] }) {
  return (
    <Card title="Guardrail filters that matched" flush>
      <Table
        label="Guardrail filters"
        rows={marks.map((mark, at) => ({ mark, at }))}
        keyOf={({ at }) => String(at)}
        columns={[
          { head: 'Filter', cell: ({ mark }) => <span class="mono">{String(mark['filter'])}</span> },
          {
            head: 'Action',
            cell: ({ mark }) => (
              <Badge tone={mark['action'] === 'block' ? 'bad' : 'warn'}>{String(mark['action'])}</Badge>
            ),
          },
          { head: 'Matches', end: true, cell: ({ mark }) => count(mark['matches'] as number) },
          {
            head: 'Guardrail',
            cell: ({ mark }) => (
              <a href={link(`/guardrails/${String(mark['guardrail_id'])}`)}>{String(mark['guardrail_scope'])}</a>
            ),
          },
        ]}
      />
    </Card>
  );
}

const NOT_LOGGED = 404;

function Content({ id }: { id: string }) {
  const { data, error } = useApi('GET /generation/content', { query: { id } });
  if (error !== null) {
    const missing = error.status === NOT_LOGGED;
    return (
      <Card title="Content">
        {missing ? (
          <p class="soft">
            Not logged. A workspace keeps prompts and answers only if <a href={link('/workspaces')}>I/O logging</a> is
            on.
          </p>
        ) : (
          <Problem error={error} />
        )}
      </Card>
    );
  }
  return <Card title="Content">{data === undefined ? <Waiting lines={3} /> : <Logged content={data.data} />}</Card>;
}

function Logged({ content }: { content: ApiGenerationContent['data'] }) {
  const { input, output, error } = content;
  return (
    <div class="stack">
      <h3>Input</h3>
      <Code label="input" text={'prompt' in input ? input.prompt : JSON.stringify(input.messages, null, 2)} />
      <h3>Output</h3>
      {output.reasoning !== null && <Code label="reasoning" text={output.reasoning} />}
      {output.completion !== null && <Code label="completion" text={output.completion} />}
      {output.tool_calls?.map((call) => (
        <Code key={call.id} label={`call of ${call.name}`} text={`${call.name}(${call.arguments})`} />
      ))}
      {output.truncated && <Note tone="warn">The output was too long to be kept in full.</Note>}
      {error !== null && <Note tone="bad">{error.message ?? 'The request failed.'}</Note>}
    </div>
  );
}

/** The attempts of a request as bars on one axis of time, which reads as a list. */
import type { ApiGeneration } from '../api.gen.ts';
import { Badge, Card } from '../ui/basics.tsx';
import { duration, NONE } from '../ui/format.ts';

type Generation = ApiGeneration['data'];
type Open = Record<string, unknown>;

interface Attempt {
  provider: string;
  model: string;
  status: number | null;
  /** Why it did not answer; undefined if it did, or if that is not recorded. */
  ended: string | undefined;
  /** Milliseconds after the request was accepted. */
  start: number;
  first: number | undefined;
  end: number;
}

const OK = 200;

export function Timeline({ generation }: { generation: Generation }) {
  const attempts = attemptsOf(generation);
  if (attempts.length === 0) {
    return (
      <Card title="Attempts">
        <p class="soft">No upstream was asked.</p>
      </Card>
    );
  }
  const total = Math.max(1, ...attempts.map(({ end }) => end));
  return (
    <Card title="Attempts">
      <ol class="timeline">
        {attempts.map((attempt, at) => (
          <li key={`${at} ${attempt.provider}`}>
            <div class="inline">
              <strong>{attempt.provider}</strong>
              <span class="mono small soft clip">{attempt.model}</span>
              <Badge tone={isAnswer(attempt) ? 'good' : 'bad'}>{attempt.status ?? 'no answer'}</Badge>
            </div>
            <Bar attempt={attempt} total={total} />
            <p class="small soft">{inWords(attempt)}</p>
          </li>
        ))}
      </ol>
      <div class="timeline-axis small soft" aria-hidden="true">
        <span>0</span>
        <span>{duration(total / 2)}</span>
        <span>{duration(total)}</span>
      </div>
    </Card>
  );
}

/** The part before the first token is paler. */
function Bar({ attempt, total }: { attempt: Attempt; total: number }) {
  const { start, first = attempt.end, end } = attempt;
  const at = (ms: number) => `${(100 * ms) / total}%`;
  return (
    <svg class={`timeline-bar ${isAnswer(attempt) ? 'good' : 'bad'}`} aria-hidden="true">
      <rect class="track" width="100%" height="100%" />
      <rect class="waiting-part" x={at(start)} width={at(first - start)} height="100%" />
      <rect x={at(first)} width={at(end - first)} height="100%" />
      {/* However short it was, it is seen. */}
      <rect x={at(Math.min(start, total * 0.995))} width="2" height="100%" />
    </svg>
  );
}

function attemptsOf({ provider_responses, latency }: Generation): Attempt[] {
  const attempts: Attempt[] = [];
  let before = 0;
  const responses = (provider_responses ?? []) as Open[];
  const answered = responses.findIndex((each) => each['status'] === OK && each['ended'] === undefined);
  for (const [at, each] of responses.entries()) {
    // Where it is not recorded, one attempt followed the other.
    const start = typeof each['started'] === 'number' ? each['started'] : before;
    const end = start + Number(each['latency'] ?? 0);
    const first = at === answered && latency !== null ? Math.min(start + latency, end) : undefined;
    attempts.push({
      provider: String(each['provider_name'] ?? NONE),
      model: String(each['model_permaslug'] ?? ''),
      status: typeof each['status'] === 'number' ? each['status'] : null,
      ended: typeof each['ended'] === 'string' ? each['ended'] : undefined,
      ...{ start, first, end },
    });
    before = end;
  }
  return attempts;
}

function isAnswer({ status, ended }: Attempt): boolean {
  return status === OK && ended === undefined;
}

function inWords(attempt: Attempt): string {
  const { start, first, end, ended } = attempt;
  const parts = [`Began after ${duration(start)}`, `took ${duration(end - start)}`];
  if (first !== undefined) parts.push(`first token after ${duration(first - start)}`);
  const why = ended === undefined ? undefined : (ENDS[ended] ?? `Ended by ${ended.replaceAll('_', ' ')}.`);
  return `${parts.join(', ')}.${why === undefined ? '' : ` ${why}`}`;
}

const ENDS: Readonly<Record<string, string>> = {
  given_up: 'It was given up: the client had left, or another attempt was faster.',
  invalid_request: 'The provider refused the request.',
  context_length: 'The prompt was too long for it.',
  too_large: 'The request was too large for it.',
  content_filter: 'The provider refused the content.',
  not_found: 'The provider does not have the model.',
  auth: 'The provider refused the credential.',
  permission: 'The credential may not use the model.',
  quota: 'The account at the provider is exhausted.',
  rate_limit: 'The provider limited the rate.',
  overloaded: 'The provider was overloaded.',
  server: 'The provider failed.',
  timeout: 'It took too long.',
  refused: 'The connection was refused.',
  cut: 'The answer broke off.',
  malformed: 'The answer could not be read.',
  empty: 'The answer was empty.',
};

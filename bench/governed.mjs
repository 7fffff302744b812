/**
 * A gateway whose key has every kind of limit: a guardrail with 20 patterns and built-in filters, the four budgets of its
 * workspace, its own limit, and rate limits of both, none of them near. It is set up through the API, as an administrator
 * would.
 */
import { startGateway } from './subjects.mjs';
import { BenchError } from './tools.mjs';

export const GOVERNED = 'governed';
/** The same gateway with another key, whose filters look through answers as well. */
export const ANSWERS = 'answers';

/** Not in the default run: `--only governed`. */
export const GOVERNED_CASES = [
  { name: 'governed, 1 KB, saturated', unit: 'requests', bytes: 1000, load: ['32'], compared: true },
  {
    name: 'governed, stream relayed, paced',
    unit: 'events',
    bytes: 1000,
    stream: true,
    load: ['50', 'stagger=20000'],
    compared: true,
  },
  {
    // By stream of 250 events: filters let text go when they are sure of it, which may be several events at once.
    name: 'governed, stream looked through, paced',
    unit: 'requests',
    bytes: 1000,
    stream: true,
    load: ['50', 'stagger=20000'],
    compared: true,
    answers: true,
  },
];

/** What a company would look for: names of its own, marks of its papers, and numbers known only by their shape. */
const PATTERNS = [
  '(?i)project[ -]?(?:nightjar|kestrel|osprey)\\b',
  '(?i)codename[ -]?zeta\\b',
  '(?i)\\bstrictly confidential\\b',
  '(?i)\\binternal use only\\b',
  '(?i)attorney[- ]client privilege',
  '(?i)\\bdo not (?:forward|distribute)\\b',
  'CUST-\\d{6,10}',
  'INV-20\\d{2}-\\d{4,8}',
  'PROJ-\\d{3,6}\\b',
  '\\bMRN[: ]?\\d{6,10}\\b',
  'https?://[a-z0-9.-]{1,63}\\.corp\\.example\\b',
  '-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----',
  '\\b[A-Z]{2}\\d{6}[A-D]\\b',
  '\\b[A-Z]{2}\\d{2}(?: ?\\d{4}){3,5}\\b',
  '\\b\\d{2}\\.\\d{3}\\.\\d{3}-[0-9K]\\b',
  '\\b\\d{4}-\\d{4}-\\d{4}\\b',
  '\\b[A-Z][0-9]{2}\\.[0-9]{1,2}\\b',
  '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}',
  '\\b[A-HJ-NPR-Z0-9]{17}\\b',
  '#[0-9a-f]{6}\\b',
];
/** Of a prompt alone. */
const INJECTION = 'regex-prompt-injection';
const BUILTINS = ['email', 'credit-card', 'secrets', INJECTION];

/** Narrower ones are smaller, as they must be. */
const BUDGETS_USD = { lifetime: 900_000_000, monthly: 800_000_000, weekly: 700_000_000, daily: 600_000_000 };
const RATE_LIMITS = {
  requests_per_minute: 100_000_000,
  requests_per_day: 10_000_000_000,
  tokens_per_minute: 100_000_000_000,
  tokens_per_day: 1_000_000_000_000,
};

/** Calls of a gateway's management API. */
export function callsOf({ port, managementKey }) {
  return async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${managementKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new BenchError(`${method} ${path} answers ${answer.status}: ${text.slice(0, 500)}`);
    return JSON.parse(text);
  };
}

/** Two subjects of one gateway. */
export async function startGoverned(folder, upstreamPort) {
  const gateway = await startGateway(folder, upstreamPort, { name: GOVERNED });
  const call = callsOf(gateway);
  await call('PATCH', '/workspaces/default', { rate_limits: RATE_LIMITS });
  for (const [interval, limit_usd] of Object.entries(BUDGETS_USD)) {
    await call('PUT', `/workspaces/default/budgets/${interval}`, { limit_usd });
  }
  const governedKey = async (name, apply_to) => {
    const key = await call('POST', '/keys', {
      name,
      limit: BUDGETS_USD.daily,
      limit_reset: 'daily',
      rate_limits: RATE_LIMITS,
    });
    const guardrail = await call('POST', '/guardrails', {
      name,
      content_filters: PATTERNS.map((pattern, index) => ({
        pattern,
        action: ['flag', 'redact', 'block'][index % 3],
        apply_to,
      })),
      content_filter_builtins: BUILTINS.filter((slug) => !apply_to.includes('response') || slug !== INJECTION).map(
        (slug) => ({ slug, action: 'redact', apply_to }),
      ),
    });
    await call('POST', `/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [key.data.hash] });
    return { ...gateway, name, headers: [`Authorization: Bearer ${key.key}`] };
  };
  return [await governedKey(GOVERNED, ['request']), await governedKey(ANSWERS, ['request', 'response'])];
}

/** Decides which records a destination gets: keys, region, sampling and filter rules. Pure once compiled. */
import { createHash } from 'node:crypto';
import { GatewayError, invalidField } from '../base/errors.ts';
import type { GenerationRecord } from './record.ts';
import type { FilterRules } from './schema.ts';

type Rule = FilterRules['groups'][number]['rules'][number];
type Test = (record: GenerationRecord) => boolean;
type Found = string | number | null;

/** The part of a text that a regular expression searches, in UTF-16 units: it runs in the process that serves requests. */
const SEARCHED = 16_384;

const FIELDS: Readonly<Record<Rule['field'], (record: GenerationRecord) => Found>> = {
  model: ({ model }) => model,
  provider: ({ provider }) => provider,
  session_id: ({ sessionId }) => sessionId,
  user_id: ({ userId }) => userId,
  api_key_name: ({ keyName }) => keyName,
  finish_reason: ({ finishReason }) => finishReason,
  input: ({ input }) => input,
  output: ({ output }) => output,
  total_cost: ({ cost }) => cost,
  total_tokens: ({ usage }) => usage && usage.prompt + usage.completion,
  prompt_tokens: ({ usage }) => usage?.prompt ?? null,
  completion_tokens: ({ usage }) => usage?.completion ?? null,
};

/** Of a number that is given as a text. */
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?$/i;
const NUMERIC: ReadonlySet<string> = new Set(['gt', 'lt', 'gte', 'lte']);
const WITHOUT_VALUE: ReadonlySet<string> = new Set(['exists', 'not_exists']);
const NUMBERS: ReadonlySet<string> = new Set(['total_cost', 'total_tokens', 'prompt_tokens', 'completion_tokens']);

/** A record matches if it matches every group; a group's `logic` combines its rules. No rules: every record matches. */
export async function compileRules(rules: FilterRules | null): Promise<Test> {
  if (rules === null || rules.enabled === false) return () => true;
  const groups: Test[] = [];
  for (const [index, { logic = 'and', rules: listed }] of rules.groups.entries()) {
    const tests: Test[] = [];
    for (const [at, rule] of listed.entries()) {
      tests.push(await compileRule(`filter_rules.groups[${index}].rules[${at}]`, rule));
    }
    groups.push(
      logic === 'or' ? (record) => tests.some((test) => test(record)) : (record) => tests.every((test) => test(record)),
    );
  }
  return (record) => groups.every((group) => group(record));
}

/** Also those that are not enabled. @throws GatewayError 400 with the field path */
export async function checkRules(rules: FilterRules | null): Promise<void> {
  await compileRules(rules && { ...rules, enabled: true });
}

/** @throws GatewayError 400 with the field path */
async function compileRule(path: string, { field, operator, value }: Rule): Promise<Test> {
  const read = FIELDS[field];
  if (WITHOUT_VALUE.has(operator)) {
    return (record) => ((read(record) ?? '') !== '') === (operator === 'exists');
  }
  if (value === undefined) throw invalidField(`${path}.value`, `is required by the operator ${operator}`);
  if (NUMERIC.has(operator) || NUMBERS.has(field)) return numericTest(path, { field, operator, value }, read);
  const wanted = String(value);
  if (operator === 'regex') return regexTest(path, wanted, read);
  const compare = TEXT_OPERATORS[operator];
  if (compare === undefined) throw invalidField(`${path}.operator`, `cannot be used with ${field}`);
  return (record) => compare(String(read(record) ?? ''), wanted);
}

function numericTest(path: string, { field, operator, value }: Rule, read: (record: GenerationRecord) => Found): Test {
  if (!NUMBERS.has(field)) throw invalidField(`${path}.operator`, `cannot be used with ${field}, which is a text`);
  const wanted = Number(value);
  if (!Number.isFinite(wanted) || (typeof value === 'string' && !DECIMAL.test(value)))
    throw invalidField(`${path}.value`, 'must be a number');
  const compare = NUMBER_OPERATORS[operator];
  if (compare === undefined) throw invalidField(`${path}.operator`, `cannot be used with ${field}, which is a number`);
  return (record) => {
    const found = read(record);
    return typeof found === 'number' && compare(found, wanted);
  };
}

/** By an engine whose time is linear in the text. */
async function regexTest(path: string, pattern: string, read: (record: GenerationRecord) => Found): Promise<Test> {
  const { RE2JS } = await import('re2js');
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    return (record) => compiled.matcher(String(read(record) ?? '').slice(0, SEARCHED)).find();
  } catch {
    throw new GatewayError('invalid_request', `${path}.value: is not a regular expression of the RE2 syntax`, {
      path: `${path}.value`,
    });
  }
}

const TEXT_OPERATORS: Readonly<Record<string, (found: string, wanted: string) => boolean>> = {
  equals: (found, wanted) => found === wanted,
  not_equals: (found, wanted) => found !== wanted,
  contains: (found, wanted) => found.includes(wanted),
  not_contains: (found, wanted) => !found.includes(wanted),
  starts_with: (found, wanted) => found.startsWith(wanted),
  ends_with: (found, wanted) => found.endsWith(wanted),
};

const NUMBER_OPERATORS: Readonly<Record<string, (found: number, wanted: number) => boolean>> = {
  equals: (found, wanted) => found === wanted,
  not_equals: (found, wanted) => found !== wanted,
  gt: (found, wanted) => found > wanted,
  lt: (found, wanted) => found < wanted,
  gte: (found, wanted) => found >= wanted,
  lte: (found, wanted) => found <= wanted,
};

const FRACTION_BITS = 48;

/**
 * Whether a share of the sessions includes the record's session. The same session has the same answer in every process
 * and for every destination; a larger share includes a smaller one. A record without a session is its trace's.
 */
export function isSampled({ sessionId, traceId, workspaceId }: GenerationRecord, rate: number): boolean {
  if (rate >= 1) return true;
  const hash = createHash('sha256')
    .update(`${workspaceId} ${sessionId ?? traceId}`)
    .digest();
  return hash.readUIntBE(0, FRACTION_BITS / 8) / 2 ** FRACTION_BITS < rate;
}

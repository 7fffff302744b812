/** Reads the error bodies of chat completions services, in all known shapes, into one vocabulary. */
import { parseJson } from '../../base/json.ts';
import { isContextOverflow } from '../conversation/context-overflow.ts';
import {
  type FailureKind,
  KIND_BY_STATUS,
  LARGEST_RAW,
  type UpstreamFailure,
  withoutAccount,
  withUsage,
} from '../conversation/failure.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import { decodeUsage } from './usage.ts';

const LARGEST_MESSAGE = 4 * 1024;

/** Decodes a response with an error status. `body` is text, possibly not JSON. */
export function decodeFailure(status: number, body: string): UpstreamFailure {
  let value: unknown;
  try {
    value = parseJson(body);
  } catch {
    // A proxy's HTML page means nothing to the client; the status does.
    const plain = body.trimStart().startsWith('<') ? '' : body.trim();
    const message = plain === '' ? `the upstream answered with status ${status}` : plain;
    return describe(status, { message }, bounded(body), body);
  }
  return describe(status, errorOf(value), body.length > LARGEST_RAW ? bounded(body) : value, body);
}

/** The failure reported by an event or by an answer with status 200; undefined when there is none. */
export function decodeInBand(name: string, value: Fields): UpstreamFailure | undefined {
  const error = value['error'];
  const told = error !== undefined && error !== null && error !== false && error !== '';
  if (!told && name !== 'error' && value['object'] !== 'error' && !isBareError(value)) return undefined;
  const parsed = errorOf(value);
  const written = JSON.stringify(value);
  const failure = describe(
    parsed.status ?? null,
    parsed,
    written.length > LARGEST_RAW ? bounded(written) : value,
    written,
  );
  return withUsage(failure, decodeUsage(value['usage']));
}

/**
 * Whether an object without `error` still reports one: `{detail}` (FastAPI), `{code, message}` (Alibaba), `{error_code,
 * error_msg}` (Baidu), `base_resp` with a status other than 0 (MiniMax). Never a chunk with choices.
 */
function isBareError(value: Fields): boolean {
  const { choices } = value;
  if (Array.isArray(choices) && choices.length > 0 && value['base_resp'] === undefined) return false;
  if (isFault(fieldsOrUndefined(value['base_resp'])?.['status_code'])) return true;
  if (Array.isArray(choices) && choices.length > 0) return false;
  if (isFault(value['error_code']) || nonEmptyText(value['error_msg']) !== undefined) return true;
  if (nonEmptyText(value['detail']) !== undefined || isFilled(value['detail'])) return true;
  if (nonEmptyText(value['message'] ?? value['msg']) === undefined) return false;
  return value['code'] === undefined ? value['success'] !== true : isFault(value['code']);
}

function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

/** Whether a code reports an error: a word, or a number that does not mean success. */
function isFault(code: unknown): boolean {
  if (typeof code !== 'number' && typeof code !== 'string') return false;
  const word = String(code).toLowerCase();
  return word !== '' && word !== '0' && word !== '200' && word !== 'ok' && word !== 'success';
}

interface ErrorText {
  message: string;
  code?: string;
  status?: number;
}

/**
 * Finds message, code and status in `{error: {...}}`, `{error: "..."}`, `{message}`, `{detail}`, `[{error}]` and the
 * shapes of `isBareError`.
 */
function errorOf(value: unknown): ErrorText {
  const body = fieldsOrUndefined(value) ?? fieldsOf(listOf(value)[0]);
  const error = fieldsOrUndefined(body['error']) ?? body;
  const found: ErrorText = { message: messageOf(body, error) };
  const code = [error['code'], error['type'], error['status'], body['error_type'], body['code']].find(
    (word) => typeof word === 'string' && word !== '' && !/^\d+$/.test(word),
  );
  if (code !== undefined) found.code = String(code);
  const status = [error['status_code'], error['code'], error['status'], body['code'], body['status']]
    // Number may throw for any other type.
    .map((word) => (typeof word === 'number' || typeof word === 'string' ? Number(word) : Number.NaN))
    .find((number) => number >= 400 && number < 600);
  if (status !== undefined) found.status = status;
  return found;
}

function messageOf(body: Fields, error: Fields): string {
  for (const told of [
    error['message'],
    body['error'],
    body['message'],
    error['detail'],
    body['detail'],
    error['msg'],
    body['error_msg'],
    fieldsOrUndefined(body['base_resp'])?.['status_msg'],
  ]) {
    if (typeof told === 'string' && told !== '') return told;
    if (typeof told === 'object' && told !== null && told !== error) return JSON.stringify(told);
  }
  return '';
}

function describe(status: number | null, error: ErrorText, raw: unknown, written: string): UpstreamFailure {
  const seen = status ?? error.status ?? null;
  const failure: UpstreamFailure = {
    kind: isOverflow(seen, error, written)
      ? 'context_length'
      : (ofAccount(seen, error) ?? kindOf(seen ?? 500, bounded(written))),
    status: seen,
    message:
      withoutAccount(error.message).slice(0, LARGEST_MESSAGE) || 'the upstream reported an error without a message',
    raw,
  };
  if (error.code !== undefined) failure.code = error.code;
  const wait = waitOf(written, failure.kind);
  if (wait !== undefined) failure.retryAfterSeconds = wait;
  return failure;
}

/** Joins wordings, observed or documented, into one expression. */
function anyOf(...wordings: readonly RegExp[]): RegExp {
  return new RegExp(wordings.map(({ source }) => source).join('|'));
}

const FILTERED = anyOf(
  /content_filter|content_policy|responsibleaipolicy|prompt_blocked|moderation/,
  // Alibaba, DeepSeek, Z.AI.
  /data_?inspection_?failed|content exists risk|unsafe or sensitive content/,
);
const NO_MONEY = anyOf(
  /insufficient_quota|insufficient (account )?balance|insufficient credits|exceeded your current quota/,
  /spend(ing)? limit|billing|arrearage|credit balance|(any|out of|no) credits|free ?tier ?only/,
);
const TOO_OFTEN =
  /rate.?limit|resource_exhausted|too many requests|throttl|tokens per (min|day)|requests per (min|day)/;
const OVERLOADED = /overloaded|over.?capacity|no capacity|capacity_exceeded|unavailable/;
const BAD_KEY = /invalid[ _]api[ _]?key|api key not valid|incorrect api key|unauthori[sz]ed|authentication/;
const NO_MODEL = anyOf(
  /model_not_found|model[^.]{0,80}(does not exist|not found|not exist)|unknown model|invalid model/,
  /model_not_supported|model_decommissioned|model_not_available|model_terms_required/,
);

/** Statuses with which services report exhausted credit. */
const PAYABLE: ReadonlySet<number> = new Set([400, 403, 412, 429]);

/** Unless the error is clearly about the request, only its message and code count: the rest may describe the server. */
function isOverflow(status: number | null, { message, code = '' }: ErrorText, written: string): boolean {
  const wholly = status === 400 || status === 413 || status === 422;
  const text = wholly ? bounded(written) : `${message.slice(0, LARGEST_MESSAGE)} ${code}`;
  return isContextOverflow(status, text) && !FILTERED.test(text.toLowerCase());
}

/** An error without a status about our account, which only its message and code can show. */
function ofAccount(status: number | null, { message, code = '' }: ErrorText): FailureKind | undefined {
  if (status !== null) return undefined;
  const text = `${message.slice(0, LARGEST_MESSAGE)} ${code}`.toLowerCase();
  if (NO_MONEY.test(text)) return 'quota';
  return BAD_KEY.test(text) ? 'auth' : undefined;
}

function kindOf(status: number, written: string): FailureKind {
  const body = written.toLowerCase();
  if (status < 500 && status !== 401 && status !== 429 && FILTERED.test(body)) return 'content_filter';
  if (status === 402 || (PAYABLE.has(status) && NO_MONEY.test(body))) return 'quota';
  // Groq answers 413 for tokens per minute.
  if (status === 429 || (status < 500 && status !== 401 && TOO_OFTEN.test(body))) return 'rate_limit';
  if (status === 401) return 'auth';
  if (status === 404) return 'not_found';
  if (status === 408 || status === 504 || status === 524) return 'timeout';
  // Conflicts inside the service, which another endpoint does not have.
  if (status === 409 || status === 425) return 'server';
  if (status === 413) return 'too_large';
  if (status === 498 || status === 503 || status === 529 || (status >= 500 && OVERLOADED.test(body)))
    return 'overloaded';
  if (status >= 500 || status < 400) return TOO_OFTEN.test(body) ? 'rate_limit' : 'server';
  if (NO_MODEL.test(body)) return 'not_found';
  if (BAD_KEY.test(body)) return 'auth';
  return KIND_BY_STATUS.get(status) ?? 'invalid_request';
}

/** Seconds to wait when only the body gives them: `retryDelay` of Google, "try again in 1m2.5s" of OpenAI and Groq. */
function waitOf(written: string, kind: FailureKind): number | undefined {
  if (kind !== 'rate_limit' && kind !== 'overloaded' && kind !== 'quota') return undefined;
  const named = /"(?:retryDelay|retry_after|retry_after_seconds|retryAfter)"\s*:\s*"?(\d+(?:\.\d+)?)/.exec(written);
  if (named !== null) return Math.max(1, Math.ceil(Number(named[1])));
  const told =
    /(?:try again|retry)(?: after| in)\s+((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|h|m|s|seconds?|minutes?)\s*)+)/i.exec(
      written,
    );
  if (told === null) return undefined;
  let seconds = 0;
  for (const [, amount, unit] of told[1]!.matchAll(/(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)/gi)) {
    const factor = { ms: 0.001, milli: 0.001, h: 3600, m: 60, s: 1 }[unit!.toLowerCase()] ?? 0;
    seconds += Number(amount) * factor;
  }
  return Math.max(1, Math.ceil(seconds));
}

function bounded(body: string): string {
  return body.length > LARGEST_RAW ? body.slice(0, LARGEST_RAW) : body;
}

export function cutFailure(): UpstreamFailure {
  return { kind: 'cut', status: null, message: 'the upstream ended its stream without an end marker' };
}

/** The failure for an event or answer that violates the format. */
export function malformedFailure(what: string, raw: unknown): UpstreamFailure {
  const shown = nonEmptyText(raw) === undefined ? raw : bounded(textOf(raw));
  return { kind: 'malformed', status: null, message: `the upstream sent ${what}`, raw: shown };
}

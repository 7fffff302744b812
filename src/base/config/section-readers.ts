/** Readers of all yaml sections except `providers`, with their defaults. */
import { BlockList, isIP } from 'node:net';
import { type Nano, nanoFromUsd } from '../money.ts';
import type { Field, Reader } from './field.ts';
import { distinct, duration, flag, integer, list, mapping, oneOf, text, textLike } from './readers.ts';
import {
  type AccountSettings,
  type EgressSettings,
  type HostSettings,
  type Limits,
  type PortRange,
  PROMPT_CACHING_MODES,
  type RetentionSettings,
} from './settings.ts';

export const DEFAULT_ACCOUNT: AccountSettings = Object.freeze({
  zdr: false,
  allowTraining: true,
  allowPublication: true,
  allowSafetyRetention: true,
  promptCaching: 'translated',
  balanceNano: null,
});

export const DEFAULT_LIMITS: Limits = Object.freeze({
  inferenceBodyBytes: 32 * 1024 * 1024,
  controlBodyBytes: 1024 * 1024,
  nestingDepth: 128,
  headerBytes: 32 * 1024,
  headerCount: 200,
  headersArrivalMs: 10_000,
  requestArrivalMs: 60_000,
  idleConnectionMs: 75_000,
  drainDelayMs: 0,
  drainMs: 10_000,
  keepAliveCommentMs: 10_000,
  upstreamReplyBytes: 64 * 1024 * 1024,
  upstreamEventBytes: 32 * 1024 * 1024,
  fetchedMedia: 32,
  fetchedMediumBytes: 20 * 1024 * 1024,
  fetchedMediaBytes: 48 * 1024 * 1024,
  mediaFetchMs: 30_000,
  responseCacheBytes: 1024 * 1024 * 1024,
  responseCacheAnswerBytes: 4 * 1024 * 1024,
  serverToolTurns: 50,
  serverToolCalls: 200,
  serverToolCallMs: 120_000,
  serverToolResultBytes: 512 * 1024,
  candidates: 16,
  connections: 20_000,
  batchRequests: 64,
  unreturnedAfterMs: 15 * 60_000,
});

export function account(field: Field): AccountSettings | undefined {
  const read = mapping(field, {
    zdr: flag,
    allow_training: flag,
    allow_publication: flag,
    allow_safety_retention: flag,
    prompt_caching: oneOf(PROMPT_CACHING_MODES),
    balance_usd: usd,
  });
  if (!read) return undefined;
  return {
    zdr: read.zdr ?? DEFAULT_ACCOUNT.zdr,
    allowTraining: read.allow_training ?? DEFAULT_ACCOUNT.allowTraining,
    allowPublication: read.allow_publication ?? DEFAULT_ACCOUNT.allowPublication,
    allowSafetyRetention: read.allow_safety_retention ?? DEFAULT_ACCOUNT.allowSafetyRetention,
    promptCaching: read.prompt_caching ?? DEFAULT_ACCOUNT.promptCaching,
    balanceNano: read.balance_usd ?? null,
  };
}

function usd(field: Field): Nano | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  const problem = 'must be an amount of USD, not negative and with at most 9 decimals, or null';
  if (typeof scalar.value !== 'number' && typeof scalar.value !== 'string') return field.fail(problem);
  try {
    return nanoFromUsd(scalar.value);
  } catch {
    return field.fail(problem);
  }
}

export function hosts(field: Field): HostSettings | undefined {
  const hostname = textLike(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'a host name in lower case, without a port');
  const seen = new Map<string, string>();
  const once: Reader<string> = (item) => {
    const name = hostname(item);
    if (name === undefined) return undefined;
    const other = seen.get(name);
    if (other !== undefined) return item.fail(`is the same host as ${other}`);
    seen.set(name, item.path);
    return name;
  };
  const read = mapping(field, { global: distinct(once), europe: distinct(once), us: distinct(once) });
  return read && { global: read.global ?? [], europe: read.europe ?? [], us: read.us ?? [] };
}

/** An IP address, or a network as address/bits. */
export function network(field: Field): string | undefined {
  const value = text(field);
  if (value === undefined) return undefined;
  const [address = '', bits, ...rest] = value.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return field.fail('must be an IP address, or a network such as 10.0.0.0/8');
  try {
    if (bits !== undefined)
      new BlockList().addSubnet(address, /^\d{1,3}$/.test(bits) ? Number(bits) : -1, `ipv${version as 4 | 6}`);
  } catch {
    return field.fail(`must have from 0 to ${version === 4 ? 32 : 128} bits after the slash`);
  }
  return value;
}

export const DEFAULT_EGRESS: EgressSettings = Object.freeze({
  networks: Object.freeze([]),
  ports: Object.freeze([80, 443].map((port) => Object.freeze({ from: port, to: port }))),
});

export function egress(field: Field): EgressSettings | undefined {
  const read = mapping(field, { networks: distinct(network), ports: list(ports) });
  return read && { networks: read.networks ?? DEFAULT_EGRESS.networks, ports: read.ports ?? DEFAULT_EGRESS.ports };
}

/** A port, or a range such as `8000-8100`. */
function ports(field: Field): PortRange | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(String(scalar.value)) ?? [];
  const range = { from: Number(first), to: Number(last) };
  const known = range.from >= 1 && range.from <= range.to && range.to <= 65_535;
  return known ? range : field.fail('must be a port from 1 to 65535, or a range such as 8000-8100');
}

export const DEFAULT_RETENTION: RetentionSettings = {
  generationsDays: null,
  responsesDays: 30,
  conversationsDays: null,
};

export function retention(field: Field): RetentionSettings | undefined {
  const read = mapping(field, {
    generations_days: days,
    responses_days: integer(1, 36_500),
    conversations_days: days,
  });
  return (
    read && {
      generationsDays: read.generations_days ?? null,
      responsesDays: read.responses_days ?? DEFAULT_RETENTION.responsesDays,
      conversationsDays: read.conversations_days ?? null,
    }
  );
}

function days(field: Field): number | undefined {
  return field.scalar()?.value === null ? undefined : integer(1, 36_500)(field);
}

export function limits(field: Field): Limits | undefined {
  const bytes = integer(1024, 2 ** 31 - 1);
  const count = integer(1, 1_000_000);
  const read = mapping(field, {
    inference_body_bytes: bytes,
    control_body_bytes: bytes,
    nesting_depth: integer(8, 10_000),
    header_bytes: bytes,
    header_count: count,
    headers_arrival: duration,
    request_arrival: duration,
    idle_connection: duration,
    drain_delay: duration,
    drain: duration,
    keep_alive_comment: duration,
    upstream_reply_bytes: bytes,
    upstream_event_bytes: bytes,
    fetched_media: count,
    fetched_medium_bytes: bytes,
    fetched_media_bytes: bytes,
    media_fetch: duration,
    response_cache_bytes: integer(0, 2 ** 40),
    response_cache_answer_bytes: bytes,
    server_tool_turns: count,
    server_tool_calls: count,
    server_tool_call: duration,
    server_tool_result_bytes: bytes,
    candidates: count,
    connections: count,
    batch_requests: integer(1, 10_000),
    unreturned_after: duration,
  });
  if (!read) return undefined;
  return {
    inferenceBodyBytes: read.inference_body_bytes ?? DEFAULT_LIMITS.inferenceBodyBytes,
    controlBodyBytes: read.control_body_bytes ?? DEFAULT_LIMITS.controlBodyBytes,
    nestingDepth: read.nesting_depth ?? DEFAULT_LIMITS.nestingDepth,
    headerBytes: read.header_bytes ?? DEFAULT_LIMITS.headerBytes,
    headerCount: read.header_count ?? DEFAULT_LIMITS.headerCount,
    headersArrivalMs: read.headers_arrival ?? DEFAULT_LIMITS.headersArrivalMs,
    requestArrivalMs: read.request_arrival ?? DEFAULT_LIMITS.requestArrivalMs,
    idleConnectionMs: read.idle_connection ?? DEFAULT_LIMITS.idleConnectionMs,
    drainDelayMs: read.drain_delay ?? DEFAULT_LIMITS.drainDelayMs,
    drainMs: read.drain ?? DEFAULT_LIMITS.drainMs,
    keepAliveCommentMs: read.keep_alive_comment ?? DEFAULT_LIMITS.keepAliveCommentMs,
    upstreamReplyBytes: read.upstream_reply_bytes ?? DEFAULT_LIMITS.upstreamReplyBytes,
    upstreamEventBytes: read.upstream_event_bytes ?? DEFAULT_LIMITS.upstreamEventBytes,
    fetchedMedia: read.fetched_media ?? DEFAULT_LIMITS.fetchedMedia,
    fetchedMediumBytes: read.fetched_medium_bytes ?? DEFAULT_LIMITS.fetchedMediumBytes,
    fetchedMediaBytes: read.fetched_media_bytes ?? DEFAULT_LIMITS.fetchedMediaBytes,
    mediaFetchMs: read.media_fetch ?? DEFAULT_LIMITS.mediaFetchMs,
    responseCacheBytes: read.response_cache_bytes ?? DEFAULT_LIMITS.responseCacheBytes,
    responseCacheAnswerBytes: read.response_cache_answer_bytes ?? DEFAULT_LIMITS.responseCacheAnswerBytes,
    serverToolTurns: read.server_tool_turns ?? DEFAULT_LIMITS.serverToolTurns,
    serverToolCalls: read.server_tool_calls ?? DEFAULT_LIMITS.serverToolCalls,
    serverToolCallMs: read.server_tool_call ?? DEFAULT_LIMITS.serverToolCallMs,
    serverToolResultBytes: read.server_tool_result_bytes ?? DEFAULT_LIMITS.serverToolResultBytes,
    candidates: read.candidates ?? DEFAULT_LIMITS.candidates,
    connections: read.connections ?? DEFAULT_LIMITS.connections,
    batchRequests: read.batch_requests ?? DEFAULT_LIMITS.batchRequests,
    unreturnedAfterMs: read.unreturned_after ?? DEFAULT_LIMITS.unreturnedAfterMs,
  };
}

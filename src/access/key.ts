/** Keys without I/O: parsing management requests and rendering keys. */
import { invalidField } from '../base/errors.ts';
import { type Nano, usdFromNano } from '../base/money.ts';
import { shownName, storable } from '../base/storable.ts';
import { readTimestamp } from '../base/timestamp.ts';
import { type RateLimits, readRateLimits } from '../rate-limits/index.ts';
import { type DataRegion, limitFromUsd } from '../spend/index.ts';
import type { Caller, KeyFacts, LimitReset } from './caller.ts';
import type { CreateKeyBody, CurrentKeyReply, KeyReply, UpdateKeyBody } from './schema.ts';
import type { KeyTerms, StoredKey } from './store.ts';
import { hashToken, keyNumber } from './token.ts';
import { type KeyUsage, NO_USAGE, type Spent } from './usage.ts';

/** Settings of a new key. */
export interface NewKeySettings {
  name: string;
  limitNano: Nano | null;
  limitReset: LimitReset | null;
  includeByokInLimit: boolean;
  rateLimits: RateLimits | null;
  expiresAt: Date | null;
  externalUser: string | null;
  externalKeyHash: string | null;
}

const MAX_INT32 = 2_147_483_647;

/** The settings of a new key. Throws GatewayError 400 with the field path for what the schema cannot check. */
export function newKeySettings(body: CreateKeyBody, nowMs: number): NewKeySettings {
  const { external } = body;
  return {
    name: shownName(body.name),
    limitNano: body.limit == null ? null : keyLimit(body.limit),
    limitReset: body.limit_reset ?? null,
    includeByokInLimit: body.include_byok_in_limit ?? false,
    rateLimits: readRateLimits(body.rate_limits ?? null),
    expiresAt: body.expires_at == null ? null : futureTime(body.expires_at, nowMs),
    externalUser: external ? storable('external.user', external.user) : null,
    externalKeyHash: external?.api_key === undefined ? null : hashToken(external.api_key),
  };
}

/** The terms of a key after a change; members absent from the body stay. Throws like `newKeySettings`. */
export function changedTerms(key: StoredKey, body: UpdateKeyBody): KeyTerms {
  const { caller } = key;
  return {
    name: body.name === undefined ? caller.name : shownName(body.name),
    disabled: body.disabled ?? key.disabled,
    limitNano: body.limit === undefined ? caller.limitNano : body.limit === null ? null : keyLimit(body.limit),
    limitReset: body.limit_reset === undefined ? caller.limitReset : body.limit_reset,
    includeByokInLimit: body.include_byok_in_limit ?? caller.includeByokInLimit,
    rateLimits: body.rate_limits === undefined ? caller.rateLimits : readRateLimits(body.rate_limits),
  };
}

/** A limit of 0 allows only free calls. */
function keyLimit(usd: number): Nano {
  return usd === 0 ? 0n : limitFromUsd('limit', usd);
}

/** What is left of the limit in the current window, in nano-dollars and never below zero; null without a limit. */
function limitRemaining(key: KeyFacts, usage: KeyUsage): Nano | null {
  if (key.limitNano === null) return null;
  const window = key.limitReset ?? 'lifetime';
  const spent = usage.usage[window] + (key.includeByokInLimit ? usage.byok[window] : 0n);
  return spent >= key.limitNano ? 0n : key.limitNano - spent;
}

/** The members shared by `GET /key` and the operations on `/keys`. */
function keyFigures(key: KeyFacts, usage: KeyUsage = NO_USAGE) {
  const remaining = limitRemaining(key, usage);
  return {
    label: key.label,
    limit: key.limitNano === null ? null : usdFromNano(key.limitNano),
    limit_remaining: remaining === null ? null : usdFromNano(remaining),
    limit_reset: key.limitReset,
    include_byok_in_limit: key.includeByokInLimit,
    rate_limits: key.rateLimits,
    ...spendMembers('usage', usage.usage),
    ...spendMembers('byok_usage', usage.byok),
    creator_user_id: key.userId,
    expires_at: key.expiresAt === null ? null : new Date(key.expiresAt).toISOString(),
  };
}

/** `ApiKey` in `openapi.json`. */
export function keyReply(key: StoredKey, usage?: KeyUsage): KeyReply {
  const { caller } = key;
  return {
    hash: caller.keyHash,
    id: keyNumber(caller.keyHash),
    name: caller.name,
    disabled: key.disabled,
    external_user: caller.externalUser,
    created_at: key.createdAt.toISOString(),
    updated_at: key.updatedAt?.toISOString() ?? null,
    workspace_id: caller.workspaceId,
    ...keyFigures(caller, usage),
  };
}

/** A key's settings for the audit log: `ApiKey` without its usage. */
export function keyState(key: StoredKey): object {
  const members = Object.entries({ kind: key.caller.kind, ...keyReply(key) });
  return Object.fromEntries(members.filter(([name]) => !/usage|remaining/.test(name)));
}

/** The resource of an audit entry about a key. */
export function keyResource({ caller }: StoredKey) {
  const workspaceId = caller.kind === 'inference' ? caller.workspaceId : null;
  return { resourceType: 'key', resourceId: caller.keyHash, workspaceId };
}

const REGIONS: readonly DataRegion[] = ['global', 'europe', 'us'];

/** `GetCurrentKeyData` in `openapi.json`. */
export function currentKeyReply(caller: Caller, usage?: KeyUsage): CurrentKeyReply {
  const isManagementKey = caller.kind === 'management';
  return {
    ...keyFigures(caller, usage),
    allowed_data_regions: REGIONS.filter((region) => caller.guardrails.regions?.has(region) ?? true),
    // Gatehouse has no tiers and no quota of free requests; clients that warn near a quota must not be alarmed.
    free_model_daily_requests: { limit: MAX_INT32, remaining: MAX_INT32, used: 0 },
    is_free_tier: false,
    is_management_key: isManagementKey,
    is_provisioning_key: isManagementKey,
    organization_id: caller.organizationId,
    rate_limit: { interval: '10s', note: 'Deprecated: it has no effect.', requests: -1 },
    workspace_id: isManagementKey ? null : caller.workspaceId,
  };
}

function spendMembers<P extends string>(prefix: P, spent: Spent) {
  return {
    [prefix]: usdFromNano(spent.lifetime),
    [`${prefix}_daily`]: usdFromNano(spent.daily),
    [`${prefix}_weekly`]: usdFromNano(spent.weekly),
    [`${prefix}_monthly`]: usdFromNano(spent.monthly),
  } as Record<P | `${P}_daily` | `${P}_weekly` | `${P}_monthly`, number>;
}

function futureTime(text: string, nowMs: number): Date {
  const time = readTimestamp('expires_at', text);
  if (time.getTime() <= nowMs) throw invalidField('expires_at', 'must be in the future');
  return time;
}

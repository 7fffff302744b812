/** Keys without I/O: reading what a management client asks for, and showing a key on the wire (wire/keys.md). */
import { invalidField } from '../base/errors.ts';
import { type Nano, usdFromNano } from '../base/money.ts';
import { shownName, storable } from '../base/storable.ts';
import { readTimestamp } from '../base/timestamp.ts';
import { type RateLimits, readRateLimits } from '../rate-limits/index.ts';
import { limitFromUsd } from '../spend/index.ts';
import type { KeyFacts, LimitReset } from './caller.ts';
import type { CreateKeyBody, CurrentKeyReply, KeyReply, UpdateKeyBody } from './schema.ts';
import type { KeyTerms, StoredKey } from './store.ts';
import { hashToken, keyNumber } from './token.ts';
import { type KeyUsage, NO_USAGE, type Spent } from './usage.ts';

/** What a client may set when it makes a key. */
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

/** The settings of a new key. Throws GatewayError 400 with the field's path for what the schema cannot say. */
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

/** The terms of a key after a change; what the body does not name stays. Throws like `newKeySettings`. */
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

/** 0 lets a key have what costs nothing. */
function keyLimit(usd: number): Nano {
  return usd === 0 ? 0n : limitFromUsd('limit', usd);
}

/** What a limit leaves in its present window, in nano-dollars and never below zero; null when there is no limit. */
function limitRemaining(key: KeyFacts, usage: KeyUsage): Nano | null {
  if (key.limitNano === null) return null;
  const window = key.limitReset ?? 'lifetime';
  const spent = usage.usage[window] + (key.includeByokInLimit ? usage.byok[window] : 0n);
  return spent >= key.limitNano ? 0n : key.limitNano - spent;
}

/** The members that `GET /key` and the operations on `/keys` share. */
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

/** `ApiKey` of wire/keys.md. */
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

/** What of a key an operator sets, for the audit log: `ApiKey` without what it has spent. */
export function keyState(key: StoredKey): object {
  const members = Object.entries({ kind: key.caller.kind, ...keyReply(key) });
  return Object.fromEntries(members.filter(([name]) => !/usage|remaining/.test(name)));
}

/** The key of an entry of the audit log. */
export function keyResource({ caller }: StoredKey) {
  const workspaceId = caller.kind === 'inference' ? caller.workspaceId : null;
  return { resourceType: 'key', resourceId: caller.keyHash, workspaceId };
}

/** `GetCurrentKeyData` of wire/keys.md. */
export function currentKeyReply(caller: KeyFacts, usage?: KeyUsage): CurrentKeyReply {
  const isManagementKey = caller.kind === 'management';
  return {
    ...keyFigures(caller, usage),
    allowed_data_regions: ['global', 'europe', 'us'],
    // There is no tier and no quota of free requests here; clients that warn near a quota must not be alarmed.
    free_model_daily_requests: { limit: MAX_INT32, remaining: MAX_INT32, used: 0 },
    is_free_tier: false,
    is_management_key: isManagementKey,
    is_provisioning_key: isManagementKey,
    organization_id: caller.organizationId,
    rate_limit: { interval: '10s', note: 'Deprecated: it limits nothing.', requests: -1 },
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
  if (time.getTime() <= nowMs) throw invalidField('expires_at', 'must lie in the future');
  return time;
}

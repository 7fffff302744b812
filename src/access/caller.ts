/**
 * The caller: everything that a request needs to know about its key. Built when the key is read from the database, frozen,
 * and shared by all requests that present the key until it changes.
 */
import type { PromptCachingMode } from '../base/config.ts';
import type { Nano } from '../base/money.ts';
import type { FormatId } from '../formats/conversation/registry.ts';
import type { RateLimits } from '../rate-limits/index.ts';
import type { Budget, DataRegion } from '../spend/index.ts';

/**
 * Inference keys run models, management keys use the control plane, SCIM tokens let an identity provider manage the
 * members of the organization. No kind can do another's work.
 */
export type KeyKind = 'inference' | 'management' | 'scim';

/** When a key's limit resets: midnight UTC, Monday, or the first of the month; null for never. */
export type LimitReset = 'daily' | 'weekly' | 'monthly';

/** The columns of the key's own row. */
export interface KeyFacts {
  /** UUID of the key's row; what other rows refer to. */
  readonly keyId: string;
  /** SHA-256 of the token in hexadecimal: the key's public id on the wire. */
  readonly keyHash: string;
  readonly kind: KeyKind;
  readonly name: string;
  /** The token, masked. */
  readonly label: string;
  /** The member who created the key, `user_...`; null when it belongs to the organization itself. */
  readonly userId: string | null;
  /** `org_...` */
  readonly organizationId: string;
  /**
   * UUID. For a management key, which has no workspace, the organization's default workspace, or '' if that was
   * deleted.
   */
  readonly workspaceId: string;
  /** What the key may spend in one window of `limitReset`; null is no limit. */
  readonly limitNano: Nano | null;
  readonly limitReset: LimitReset | null;
  /** True if spend on BYOK credentials counts towards the limit. */
  readonly includeByokInLimit: boolean;
  /** The key's own limits; null if only the configuration's defaults apply. */
  readonly rateLimits: RateLimits | null;
  /** The name under which a partner knows the key's end user. */
  readonly externalUser: string | null;
  /** The intern that the key belongs to and is confined to, a UUID; null for the keys of people and applications. */
  readonly internId: string | null;
  /** Wall time in ms; null for never. Already checked when a caller is returned. */
  readonly expiresAt: number | null;
}

/** Workspace rules for requests; compiled by `workspaces/` when they change. Shared, frozen. */
export interface WorkspaceTerms {
  /** Models used when a request names none. */
  readonly defaultTextModel: string | null;
  readonly defaultImageModel: string | null;
  /** `price`, `throughput`, `latency` or `exacto`; applies to requests that set no sort. */
  readonly defaultProviderSort: string | null;
  /** Where cache breakpoints are placed for clients that set none; null for the account setting. */
  readonly promptCaching: PromptCachingMode | null;
  /** `svc:...`; empty for most. */
  readonly disabledServerTools: ReadonlySet<string>;
  /** The same objects until one of them changes. */
  readonly budgets: readonly Budget[];
  /** Shared by all keys of the workspace; null if only the configuration's defaults apply. */
  readonly rateLimits: RateLimits | null;
  /** Which inputs and outputs are kept; null for none. */
  readonly ioLogging: IoLoggingTerms | null;
  /** By slug. */
  readonly presets: ReadonlyMap<string, PresetTerms>;
}

/** A preset as requests use it; compiled and read only by `presets/`. */
export interface PresetTerms {
  /** UUID. */
  readonly id: string;
  /** Of the request that it was made from. */
  readonly format: FormatId;
  /** Members of requests in this format. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly systemPrompt: string | null;
}

export interface IoLoggingTerms {
  /** Share of requests that is kept, above 0 and up to 1. */
  readonly samplingRate: number;
  /** Numbers of keys (`keyNumber`); null: every key. */
  readonly keyNumbers: ReadonlySet<number> | null;
}

/** For keys of a workspace without rules. */
export const NO_TERMS: WorkspaceTerms = Object.freeze({
  defaultTextModel: null,
  defaultImageModel: null,
  defaultProviderSort: null,
  promptCaching: null,
  disabledServerTools: new Set<string>(),
  budgets: Object.freeze([]),
  rateLimits: null,
  ioLogging: null,
  presets: new Map<string, PresetTerms>(),
});

/** Guardrail rules of one key; compiled and read only by `guardrails/`, opaque elsewhere. Shared, frozen. */
export interface GuardrailTerms {
  /** Ids of the guardrails that apply. */
  readonly ids: readonly string[];
  /** Regional roots that requests may use; null for any, empty for none. */
  readonly regions: ReadonlySet<DataRegion> | null;
}

/** For a key without guardrails. */
export const NO_GUARDRAILS: GuardrailTerms = Object.freeze({ ids: Object.freeze([]), regions: null });

/** A key with its workspace and guardrail rules. */
export interface Caller extends KeyFacts {
  readonly workspace: WorkspaceTerms;
  readonly guardrails: GuardrailTerms;
}

/** For work that must end although its key may be gone. */
export function callerWithoutRules(
  key: Pick<KeyFacts, 'keyId' | 'keyHash' | 'organizationId' | 'workspaceId'>,
): Caller {
  return {
    ...key,
    ...{ kind: 'inference', name: '', label: '', userId: null, externalUser: null, internId: null, expiresAt: null },
    ...{ limitNano: null, limitReset: null, includeByokInLimit: false, rateLimits: null },
    ...{ workspace: NO_TERMS, guardrails: NO_GUARDRAILS },
  };
}

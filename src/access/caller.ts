/**
 * Who calls: what one key stands for. Made when the key is read from the database, frozen, and shared by every request
 * that presents the key until something about it changes.
 */
import type { PromptCachingMode } from '../base/config.ts';
import type { Nano } from '../base/money.ts';
import type { RateLimits } from '../rate-limits/index.ts';
import type { Budget } from '../spend/index.ts';

/**
 * Inference keys run models, management keys run the control plane, SCIM tokens let an identity provider say who belongs
 * to the organization. None does another's work.
 */
export type KeyKind = 'inference' | 'management' | 'scim';

/** When a key's limit starts anew: midnight UTC, Monday, the first of the month; null never (spec "Spend windows"). */
export type LimitReset = 'daily' | 'weekly' | 'monthly';

/** What the key's own row says. */
export interface KeyFacts {
  /** UUID of the key's row; what other rows refer to. */
  readonly keyId: string;
  /** SHA-256 of the token in hexadecimal: the key's public id on the wire. */
  readonly keyHash: string;
  readonly kind: KeyKind;
  readonly name: string;
  /** The token, masked. */
  readonly label: string;
  /** The member who made the key, `user_...`; null when it belongs to the organization itself. */
  readonly userId: string | null;
  /** `org_...` */
  readonly organizationId: string;
  /**
   * UUID. A management key stands in no workspace of its own: here it is the organization's default one, or '' when that
   * was deleted.
   */
  readonly workspaceId: string;
  /** What the key may spend in one window of `limitReset`; null is no limit. */
  readonly limitNano: Nano | null;
  readonly limitReset: LimitReset | null;
  /** Whether spend on the customer's own provider keys counts towards the limit. */
  readonly includeByokInLimit: boolean;
  /** The key's own; null where only the configuration's hold. */
  readonly rateLimits: RateLimits | null;
  /** A partner's own name for the end user behind the key (wire/keys.md, "External"). */
  readonly externalUser: string | null;
  /** Wall time in ms; null is never. Already checked when a caller is handed out. */
  readonly expiresAt: number | null;
}

/** What a workspace prescribes to every request of its keys; compiled by `workspaces/` when it changes, shared, frozen. */
export interface WorkspaceTerms {
  /** Models that are asked when a request names none. */
  readonly defaultTextModel: string | null;
  readonly defaultImageModel: string | null;
  /** `price`, `throughput`, `latency` or `exacto`, for requests that say nothing about it. */
  readonly defaultProviderSort: string | null;
  /** Where cache breakpoints are placed for clients that set none; null: as the account says. */
  readonly promptCaching: PromptCachingMode | null;
  /** `svc:...`; empty for most. */
  readonly disabledServerTools: ReadonlySet<string>;
  /** The same objects until something about them changes. */
  readonly budgets: readonly Budget[];
  /** For all keys of the workspace together; null where only the configuration's hold. */
  readonly rateLimits: RateLimits | null;
  /** Whose inputs and outputs are kept; null: nobody's. */
  readonly ioLogging: IoLoggingTerms | null;
}

export interface IoLoggingTerms {
  /** The share of requests that is kept, above 0 and up to 1. */
  readonly samplingRate: number;
  /** Numbers of keys (`keyNumber`); null: every key. */
  readonly keyNumbers: ReadonlySet<number> | null;
}

/** Of a key whose workspace prescribes nothing. */
export const NO_TERMS: WorkspaceTerms = Object.freeze({
  defaultTextModel: null,
  defaultImageModel: null,
  defaultProviderSort: null,
  promptCaching: null,
  disabledServerTools: new Set<string>(),
  budgets: Object.freeze([]),
  rateLimits: null,
  ioLogging: null,
});

/** What guardrails prescribe to one key; compiled and read by `guardrails/`, opaque to everybody else. Shared, frozen. */
export interface GuardrailTerms {
  /** Those that apply. */
  readonly ids: readonly string[];
}

/** Of a key that no guardrail applies to. */
export const NO_GUARDRAILS: GuardrailTerms = Object.freeze({ ids: Object.freeze([]) });

/** A key with everything that other resources prescribe to it. */
export interface Caller extends KeyFacts {
  readonly workspace: WorkspaceTerms;
  readonly guardrails: GuardrailTerms;
}

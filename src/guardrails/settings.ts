/** The settings of one guardrail, as stored and compiled. null means not set. */
import type { Nano } from '../base/money.ts';
import type { DataRegion } from '../spend/index.ts';
import type { Vendor } from './vendors.ts';

export type FilterAction = 'block' | 'redact' | 'flag';
export type FilterDirection = 'request' | 'response';

export interface BuiltinFilter {
  slug: string;
  action: FilterAction;
  /** Replacement that `redact` writes; absent for the filter's default. */
  label?: string;
  /** For prompt injection: search only what users wrote, or everything. */
  scanScope?: 'user_only' | 'all_messages';
  /** Absent means requests. */
  appliesTo?: readonly FilterDirection[];
}

export interface PatternFilter {
  pattern: string;
  action: FilterAction;
  /** Replacement that `redact` writes. */
  label: string | null;
  /** Absent means requests. */
  appliesTo?: readonly FilterDirection[];
}

/**
 * The settings that are stored as one JSON value, so a further one needs no migration: a line here and in `NO_RULES`, its
 * wire member in `schema.ts` (as written and as shown) and `guardrail.ts`, and its effect in `policy.ts`.
 */
export interface Rules {
  allowedRegions: readonly DataRegion[] | null;
  allowedModels: readonly string[] | null;
  ignoredModels: readonly string[] | null;
  allowedProviders: readonly string[] | null;
  ignoredProviders: readonly string[] | null;
  builtins: readonly BuiltinFilter[] | null;
  patterns: readonly PatternFilter[] | null;
  freePublication: boolean | null;
  freeTraining: boolean | null;
  paidTraining: boolean | null;
  /** The deprecated member as last written; only the per-vendor members are enforced. */
  zdrWritten: boolean | null;
  zdr: Readonly<Record<Vendor, boolean | null>>;
  /** True if requests that need zero retention may use endpoints that retain for safety; by vendor of the model. */
  safetyRetention: Readonly<Record<'vendor_c' | 'other', boolean | null>>;
}

export const NO_RULES: Rules = {
  allowedRegions: null,
  allowedModels: null,
  ignoredModels: null,
  allowedProviders: null,
  ignoredProviders: null,
  builtins: null,
  patterns: null,
  freePublication: null,
  freeTraining: null,
  paidTraining: null,
  zdrWritten: null,
  zdr: { vendor_a: null, vendor_b: null, vendor_c: null, vendor_d: null, other: null },
  safetyRetention: { vendor_c: null, other: null },
};

/** Stored rules, with defaults for members added since they were written. */
export function completeRules(stored: Partial<Rules>): Rules {
  return {
    ...NO_RULES,
    ...stored,
    zdr: { ...NO_RULES.zdr, ...stored.zdr },
    safetyRetention: { ...NO_RULES.safetyRetention, ...stored.safetyRetention },
  };
}

export interface GuardrailSettings {
  name: string;
  description: string | null;
  rules: Rules;
  /** Both set or both null. */
  limitNano: Nano | null;
  resetInterval: 'daily' | 'weekly' | 'monthly' | null;
  includeByok: boolean;
}

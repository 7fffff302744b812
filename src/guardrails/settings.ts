/** What one guardrail prescribes, as it is stored and compiled. null: it says nothing about that. */
import type { Nano } from '../base/money.ts';
import type { DataRegion } from '../spend/index.ts';
import type { Vendor } from './vendors.ts';

export type FilterAction = 'block' | 'redact' | 'flag';
export type FilterDirection = 'request' | 'response';

export interface BuiltinFilter {
  slug: string;
  action: FilterAction;
  /** What `redact` writes in place of a match; absent: the filter's own. */
  label?: string;
  /** Of prompt injection: only what users wrote, or everything. */
  scanScope?: 'user_only' | 'all_messages';
  /** Absent: requests. */
  appliesTo?: readonly FilterDirection[];
}

export interface PatternFilter {
  pattern: string;
  action: FilterAction;
  /** What `redact` writes in place of a match. */
  label: string | null;
  /** Absent: requests. */
  appliesTo?: readonly FilterDirection[];
}

/** The members that are stored as one JSON value. */
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
  /** The deprecated member as it was last written; enforced are those by vendor. */
  zdrWritten: boolean | null;
  zdr: Readonly<Record<Vendor, boolean | null>>;
  /** Whether requests that want zero retention may use endpoints that retain for safety, by vendor of the model. */
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

/** What is stored, where members that came later say nothing. */
export function rulesOf(stored: Partial<Rules>): Rules {
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
  /** Both or neither. */
  limitNano: Nano | null;
  resetInterval: 'daily' | 'weekly' | 'monthly' | null;
  includeByok: boolean;
}

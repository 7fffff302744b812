/** Assembles the parts of this folder: one `Access` per process. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { Changes, Database } from '../storage/database.ts';
import { type AccessTokens, Authenticator } from './authenticator.ts';
import { bootstrap, type ChosenTokens, type FirstKey } from './bootstrap.ts';
import {
  type Caller,
  type GuardrailTerms,
  type KeyFacts,
  NO_GUARDRAILS,
  NO_TERMS,
  type WorkspaceTerms,
} from './caller.ts';
import { type AccessChecks, createPermit, type Permit } from './permit.ts';
import { presentedKeys } from './store.ts';

export interface AccessParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  /** By workspace id; a missing id has no workspace rules. Changes must be announced on WORKSPACES_TOPIC. */
  termsOf?: TermsOf;
  /**
   * By key id; no guardrail applies to a missing id. Changes of a guardrail must be announced on GUARDRAILS_TOPIC,
   * changes of an assignment on the topic of its keys, members or workspace.
   */
  guardrailsOf?: GuardrailsOf;
  /** Absent: every token is a key. */
  accessTokens?: AccessTokens;
  /** Absent: there are no programmes and no scopes, and every request reaches the global root. */
  checks?: AccessChecks;
}

export type GuardrailsOf = (keys: readonly KeyFacts[]) => Promise<ReadonlyMap<string, GuardrailTerms>>;

export type TermsOf = (workspaceIds: readonly string[]) => Promise<ReadonlyMap<string, WorkspaceTerms>>;

export interface Access {
  /**
   * Authenticates a request. Returns the caller of a cached key at once, without a promise; an unknown key is looked
   * up. Throws or rejects with GatewayError: 401 `authentication` for a missing, unknown, disabled or expired key, 403
   * when its creator is no longer a member of the organization, 503 (retryable) when the database is needed and
   * unreachable.
   */
  authenticate(headers: IncomingHttpHeaders): Caller | Promise<Caller>;
  /**
   * Like `authenticate`, for credentials that act for a key without presenting it. Accepts the key's hash, or the hash
   * it had before its secret was rotated.
   */
  callerOfKey(hash: string): Caller | Promise<Caller>;
  /** See `permit.ts`. */
  permit: Permit;
  /** See `bootstrap.ts`. */
  bootstrap(chosen?: ChosenTokens, show?: (keys: FirstKey[]) => void): Promise<FirstKey[] | null>;
}

export function createAccess(parts: AccessParts): Access {
  const { database, changes, clock, termsOf, guardrailsOf, accessTokens, checks = {} } = parts;
  const load = async (hashes: string[]) => {
    const keys = await presentedKeys(database, hashes);
    // Management keys run no models, so no rules apply to them.
    const inference = keys.filter(({ caller }) => caller.kind === 'inference');
    const ids = new Set(inference.map(({ caller }) => caller.workspaceId));
    const [terms, guarded] =
      ids.size === 0
        ? []
        : await Promise.all([termsOf?.([...ids]), guardrailsOf?.(inference.map(({ caller }) => caller))]);
    return keys.map((key) => {
      const workspaceTerms = key.caller.kind === 'inference' ? terms?.get(key.caller.workspaceId) : undefined;
      const guardrails = guarded?.get(key.caller.keyId) ?? NO_GUARDRAILS;
      return { ...key, caller: Object.freeze({ ...key.caller, workspace: workspaceTerms ?? NO_TERMS, guardrails }) };
    });
  };
  const authenticator = new Authenticator({ changes, clock, load, accessTokens });
  return {
    authenticate: (headers) => authenticator.authenticate(headers),
    callerOfKey: (hash) => authenticator.callerOfKey(hash),
    permit: createPermit(checks),
    bootstrap: (chosen, show) => bootstrap(parts, chosen, show),
  };
}

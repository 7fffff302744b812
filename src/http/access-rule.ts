/**
 * Who may call an operation, as data. `access/permit.ts` evaluates it and nothing else does, `openapi.ts` describes it,
 * and `test/access/permissions.test.ts` compares it with the expected one for each operation.
 */
import type { HostSettings } from '../base/config.ts';

/**
 * What a caller authenticates with. Inference keys run models, management keys use the control plane, and SCIM tokens
 * let an identity provider manage members. An access token is of the kind of the key that it acts for.
 */
export type CallerKind = 'inference' | 'management' | 'scim';

/** An API root, by the host names that reach it (`hosts` in gatehouse.yaml). */
export type Region = keyof HostSettings;

export interface AccessRule {
  /** 403 for callers of other kinds. `anyone`: no key is needed, and none is checked. */
  kinds: readonly CallerKind[] | 'anyone';
  /** Answers keys of other kinds like unknown ones: 401 instead of 403, where the public interface says so. */
  otherKinds?: 'unknown';
  /** Only callers in this programme know that the operation exists: 404 for all others. The wiring defines programmes. */
  programme?: string;
  /**
   * For keys that are confined to some resources: the name of a check of the caller and the path's parameters. 404 where
   * it fails. The wiring defines scopes.
   */
  scope?: string;
  /** Roots that serve the operation; 403 on the others. Default: all. */
  regions?: readonly Region[];
}

export const ANYONE: AccessRule = { kinds: 'anyone' };
/** SCIM tokens are not keys. */
export const ANY_KEY: AccessRule = { kinds: ['inference', 'management'] };
export const MANAGEMENT: AccessRule = { kinds: ['management'] };
export const INFERENCE: AccessRule = { kinds: ['inference'] };
export const SCIM: AccessRule = { kinds: ['scim'] };

/** Assembles the parts of federation: one `Federation` per process. */
import type { AccessTokens, Caller } from '../../access/index.ts';
import type { FederationPolicy } from '../../base/config.ts';
import type { Egress } from '../../egress/index.ts';
import { OwnAccessTokens } from './access-tokens.ts';
import { Exchanges } from './exchange.ts';
import { Issuers } from './issuers.ts';
import type { SigningKeyParts, SigningKeys } from './signing-keys.ts';

interface FederationParts extends SigningKeyParts {
  egress: Pick<Egress, 'request'>;
  /** The current configuration. */
  policies(): readonly FederationPolicy[];
  /** `Access.callerOfKey` */
  callerOfKey(hash: string): Caller | Promise<Caller>;
}

/** Workloads exchange the JWT of their own identity provider for a short-lived token. */
export interface Federation {
  /** For `AccessParts.accessTokens`. */
  readonly tokens: AccessTokens;
  readonly exchanges: Pick<Exchanges, 'exchange'>;
  readonly keys: Pick<SigningKeys, 'all' | 'problem'>;
}

/** Makes no request before the first token arrives. */
export function createFederation(parts: FederationParts): Federation {
  const tokens = new OwnAccessTokens(parts);
  const exchanges = new Exchanges({ ...parts, issuers: new Issuers(parts), tokens });
  return { tokens, exchanges, keys: tokens.keys };
}

/** Which member of the organization a person is, and whether the member may manage it. */
import type { OidcSettings } from '../../base/config.ts';
import { unmetRule } from '../../sign-in/index.ts';
import type { Queryable } from '../../storage/database.ts';
import * as store from '../store.ts';
import type { Claims } from './claims.ts';

/** Why a person does not get in; the sign-in page says it. */
export type Refusal = 'unverified' | 'not_member' | 'not_admin';

/** Within the transaction that signs the member in, which locks out others for the same member. */
export async function adminOf(
  tx: Queryable,
  organizationId: string,
  settings: OidcSettings,
  claims: Claims,
): Promise<store.FoundMember | Refusal> {
  const name = nameIn(settings, claims);
  if (name === undefined) return 'unverified';
  const [member, ...others] = await store.findMembers(tx, organizationId, settings.match, name);
  if (member === undefined || others.length > 0) return 'not_member';
  const { admins } = settings;
  const isNamed = admins.length > 0 && unmetRule(claims, admins) === undefined;
  return member.role === 'admin' || isNamed ? member : 'not_admin';
}

const CLAIMS = { email: 'email', user_name: 'preferred_username', external_id: 'sub' } as const;

/** An e-mail address that the provider has not verified could be anybody's. */
function nameIn({ match }: OidcSettings, claims: Claims): string | undefined {
  const name = claims[CLAIMS[match]];
  if (typeof name !== 'string' || name === '') return undefined;
  return match === 'email' && claims['email_verified'] !== true ? undefined : name;
}

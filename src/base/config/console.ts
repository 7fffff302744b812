/** The section `console` of the yaml: signing in to the console through an identity provider (docs/guides/console.md). */
import { Secret } from '../secret.ts';
import { type ClaimRule, claimRules, issuerAddress } from './federation.ts';
import type { Field } from './field.ts';
import { CREDENTIAL } from './provider-readers.ts';
import { distinct, mapping, oneOf, text, textLike } from './readers.ts';

/** What of a person's claims names a member: the verified e-mail address, or the SCIM user name or external id. */
const MEMBER_MATCHES = ['email', 'user_name', 'external_id'] as const;
export type MemberMatch = (typeof MEMBER_MATCHES)[number];

export interface OidcSettings {
  /** Shown on the button of the sign-in page. */
  name: string;
  /** Exact value of `iss`. */
  issuer: string;
  clientId: string;
  /** null: a public client. */
  clientSecret: Secret | null;
  /** Without `openid`, which is always requested. */
  scopes: readonly string[];
  match: MemberMatch;
  /** Claims of members that may sign in in addition to those with the role `admin`; empty: no others. */
  admins: readonly ClaimRule[];
  /** null: where the browser finds the gateway. */
  redirectUri: string | null;
}

export interface ConsoleSettings {
  /** null: people sign in with a management key. */
  oidc: OidcSettings | null;
}

export const DEFAULT_CONSOLE: ConsoleSettings = Object.freeze({ oidc: null });
export const DEFAULT_OIDC_NAME = 'single sign-on';
const DEFAULT_SCOPES = ['email', 'profile'];
const CALLBACK = '/console/session/oidc';

const clientText = textLike(CREDENTIAL, 'a text without spaces or control characters');
const scope = textLike(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'the name of a scope');

export function consoleSection(field: Field): ConsoleSettings | undefined {
  const read = mapping(field, { oidc });
  return read && { oidc: read.oidc ?? null };
}

function oidc(field: Field): OidcSettings | undefined {
  const shape = {
    ...{ name: text, issuer: issuerAddress, client_id: clientText, client_secret: clientText },
    ...{ scopes: distinct(scope), match: oneOf(MEMBER_MATCHES), admins: claimRules, redirect_uri: redirectUri },
  };
  const read = mapping(field, shape, ['issuer', 'client_id']);
  if (read?.issuer === undefined || read.client_id === undefined) return undefined;
  return {
    name: read.name ?? DEFAULT_OIDC_NAME,
    issuer: read.issuer,
    clientId: read.client_id,
    clientSecret: read.client_secret === undefined ? null : new Secret(read.client_secret),
    scopes: (read.scopes ?? DEFAULT_SCOPES).filter((each) => each !== 'openid'),
    match: read.match ?? 'email',
    admins: read.admins ?? [],
    redirectUri: read.redirect_uri ?? null,
  };
}

function redirectUri(field: Field): string | undefined {
  const value = text(field);
  if (value === undefined) return undefined;
  const url = URL.parse(value);
  const isAddress = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
  if (isAddress && url.search === '' && url.hash === '' && url.pathname.endsWith(CALLBACK)) return value;
  return field.fail(`must be the URL of the gateway followed by ${CALLBACK}`);
}

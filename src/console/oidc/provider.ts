/**
 * The identity provider that people sign in with: authorization code with PKCE, by `openid-client`, which is loaded with
 * the first sign-in. All requests to the provider go through the checked egress.
 */
import { randomBytes } from 'node:crypto';
import type { Configuration, CustomFetch } from 'openid-client';
import type { Clock } from '../../base/clock.ts';
import type { OidcSettings } from '../../base/config.ts';
import type { Egress } from '../../egress/index.ts';
import { type Claims, withUserInfo } from './claims.ts';

export interface ProviderParts {
  egress: Pick<Egress, 'request'>;
  clock: Clock;
}

/** What the browser keeps between leaving for the provider and coming back. */
export interface Attempt {
  state: string;
  nonce: string;
  /** Of PKCE. */
  verifier: string;
}

/** Of the discovery document. */
const FRESH_MS = 3_600_000;
const TIMEOUT_MS = 10_000;
const MOST_BYTES = 1024 * 1024;
const RANDOM_BYTES = 32;

const client = () => import('openid-client');

interface Known {
  settings: OidcSettings;
  configuration: Promise<Configuration>;
  /** Monotonic time. */
  until: number;
}

export class OidcProvider {
  readonly #parts: ProviderParts;
  #known: Known | undefined;

  constructor(parts: ProviderParts) {
    this.#parts = parts;
  }

  /** The URL that the browser must open. Rejects if the provider cannot be reached. */
  async begin(settings: OidcSettings, redirectUri: string): Promise<{ url: string; attempt: Attempt }> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await client();
    const configuration = await this.#configuration(settings);
    const attempt = { state: random(), nonce: random(), verifier: random() };
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: ['openid', ...settings.scopes].join(' '),
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
    });
    return { url: url.href, attempt };
  }

  /**
   * The claims of the person, whose ID token is verified: signature, issuer, audience, times, nonce. Those that only the
   * provider's user info has are added. Rejects with what is wrong.
   * @param callback the URL at which the provider has sent the browser back
   */
  async finish(settings: OidcSettings, callback: URL, { state, nonce, verifier }: Attempt): Promise<Claims> {
    const { authorizationCodeGrant, fetchUserInfo } = await client();
    const configuration = await this.#configuration(settings);
    const tokens = await authorizationCodeGrant(configuration, callback, {
      pkceCodeVerifier: verifier,
      expectedState: state,
      expectedNonce: nonce,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (claims === undefined) throw new Error('the provider has sent no ID token');
    if (configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
    return withUserInfo(claims, await fetchUserInfo(configuration, tokens.access_token, claims.sub));
  }

  /** Where the person signs out of the provider as well; null if it has no such page. */
  async signOutUrl(settings: OidcSettings, returnTo: string): Promise<string | null> {
    const { buildEndSessionUrl } = await client();
    const configuration = await this.#configuration(settings);
    if (configuration.serverMetadata().end_session_endpoint === undefined) return null;
    return buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo }).href;
  }

  async #configuration(settings: OidcSettings): Promise<Configuration> {
    const now = this.#parts.clock.monotonic();
    if (this.#known?.settings !== settings || this.#known.until <= now) {
      this.#known = { settings, configuration: this.#discover(settings), until: now + FRESH_MS };
    }
    const known = this.#known;
    return known.configuration.catch((error: unknown) => {
      if (this.#known === known) this.#known = undefined;
      throw error;
    });
  }

  async #discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
    const oidc = await client();
    const fetched = throughEgress(this.#parts.egress);
    const isLocal = issuer.startsWith('http:');
    const configuration = await oidc.discovery(
      new URL(issuer),
      clientId,
      undefined,
      clientSecret === null ? oidc.None() : oidc.ClientSecretBasic(clientSecret.reveal()),
      {
        [oidc.customFetch]: fetched,
        timeout: TIMEOUT_MS / 1_000,
        // The configuration accepts plain http for this machine only.
        execute: [oidc.enableNonRepudiationChecks, ...(isLocal ? [oidc.allowInsecureRequests] : [])],
      },
    );
    configuration[oidc.customFetch] = fetched;
    return configuration;
  }
}

function random(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url');
}

function throughEgress(egress: Pick<Egress, 'request'>): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const { status, ...reply } = await egress.request({
      url,
      method: method === 'POST' ? 'POST' : 'GET',
      headers: Object.fromEntries(new Headers(headers as Record<string, string>)),
      ...(body != null && { body: String(body) }),
      ...(signal && { signal }),
      ...{ maxBytes: MOST_BYTES, timeoutMs: TIMEOUT_MS, tlsOnly: true, redirects: 'return' },
    });
    return new Response(reply.body.length === 0 ? null : new Uint8Array(reply.body), {
      status,
      headers: { ...reply.headers },
    });
  };
}

/** An OpenID provider as a real server (`oidc-provider`), which signs every visitor in as the person that the test names. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import type Provider from 'oidc-provider';

export interface Person {
  sub: string;
  email?: string;
  email_verified?: boolean;
  preferred_username?: string;
  groups?: readonly string[];
}

export const CLIENT = { id: 'gatehouse', secret: 'secret-of-the-client' };

export class IdentityProvider {
  issuer = '';
  /** null: refuses. */
  person: Person | null = null;
  /** Changes the ID token on its way to the client. */
  tamper: ((idToken: string) => string) | undefined;
  readonly #people = new Map<string, Person>();
  readonly #server = http.createServer();

  async listen(): Promise<this> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening));
    this.issuer = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  /** @param gateway its base URL, where it may send browsers back to */
  async serve(gateway: string): Promise<void> {
    const { default: OidcProvider } = await import('oidc-provider');
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    const jwks = { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'first' }] };
    const provider = new OidcProvider(this.issuer, { ...this.#settings(gateway), jwks });
    provider.use(async (context, next) => {
      await next();
      const token = context.body?.id_token;
      if (context.oidc?.route === 'token' && token !== undefined && this.tamper) {
        context.body.id_token = this.tamper(token);
      }
    });
    const answer = provider.callback();
    this.#server.on('request', (request, response) => {
      if (request.url?.startsWith('/interaction/')) void this.#interact(provider, request, response);
      else void answer(request, response);
    });
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #interact(provider: Provider, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (this.person !== null) this.#people.set(this.person.sub, this.person);
    const result =
      this.person === null
        ? { error: 'access_denied', error_description: 'not today' }
        : { login: { accountId: this.person.sub, remember: false } };
    await provider.interactionFinished(request, response, result);
  }

  #settings(gateway: string): object {
    return {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          redirect_uris: [`${gateway}/console/session/oidc`],
          post_logout_redirect_uris: [`${gateway}/console/`],
        },
      ],
      cookies: { keys: ['key of its cookies'] },
      claims: { email: ['email', 'email_verified'], profile: ['preferred_username', 'groups'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      findAccount: (_: unknown, sub: string) => ({ accountId: sub, claims: () => this.#people.get(sub) }),
      // Consent is not what is tested.
      loadExistingGrant: async (context: { oidc: { provider: Provider; client: never; session: never } }) => {
        const { provider, client, session } = context.oidc as never as {
          provider: Provider;
          client: { clientId: string };
          session: { accountId: string };
        };
        const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
        grant.addOIDCScope('openid email profile');
        await grant.save();
        return grant;
      },
    };
  }
}

/** A browser without pages: it keeps cookies and follows redirects. */
export class Visitor {
  readonly #jars = new Map<string, Map<string, string>>();

  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const { origin } = new URL(url);
    const jar = this.#jars.get(origin) ?? new Map<string, string>();
    this.#jars.set(origin, jar);
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ');
    const response = await fetch(url, {
      ...init,
      headers: { ...init.headers, ...(cookie !== '' && { cookie }) },
      redirect: 'manual',
    });
    for (const set of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = set.split(';');
      const [name = '', value = ''] = pair.split(/=(.*)/s);
      const ends = attributes.some((each) => /^\s*(?:max-age=0|expires=Thu, 01 Jan 1970)/i.test(each));
      if (ends || value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** The last URL of a chain of redirects whose first step is `url`, before `until` is requested. */
  async follow(url: string, until: string): Promise<string> {
    let next = url;
    for (let step = 0; step < 10 && !next.startsWith(until); step++) {
      const response = await this.send(next);
      const location = response.headers.get('location');
      if (location === null) throw new Error(`no redirect but ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
      next = new URL(location, next).href;
    }
    return next;
  }
}

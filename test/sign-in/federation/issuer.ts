/** An identity provider of workloads: its document and its keys over HTTP, and the JWTs that it gives. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { type Gateway, INFERENCE_KEY } from '../../../src/testing/gateway/gateway.ts';
import type { Json } from '../../workspaces/control.ts';

export const AUDIENCE = 'gatehouse';
export const SUBJECT = 'repo:acme/app:ref:refs/heads/main';
export const KEY_HASH = hashOf(INFERENCE_KEY);

export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export interface IssuedKey {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  /** Public. */
  jwk: Record<string, unknown>;
}

export async function makeKey(kid: string, alg = 'RS256'): Promise<IssuedKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/** The claims of a build at this moment of the gateway's clock. */
export function claimsAt(nowMs: number, issuer: string, more: JWTPayload = {}): JWTPayload {
  const now = Math.floor(nowMs / 1000);
  return { iss: issuer, aud: AUDIENCE, sub: SUBJECT, iat: now, nbf: now, exp: now + 600, ...more };
}

export function sign(key: IssuedKey, claims: JWTPayload, header: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })
    .sign(key.privateKey);
}

export class Issuer {
  url = '';
  readonly keys: IssuedKey[] = [];
  /** Paths that were asked for. */
  readonly asked: string[] = [];
  /** It breaks every connection. */
  down = false;
  /** Replaces its usual responses, by path. */
  readonly says = new Map<string, unknown>();

  answer(request: http.IncomingMessage, response: http.ServerResponse): void {
    const path = request.url ?? '';
    this.asked.push(path);
    if (this.down) {
      response.destroy();
      return;
    }
    const usual: Record<string, unknown> = {
      '/.well-known/openid-configuration': { issuer: this.url, jwks_uri: `${this.url}/keys` },
      '/keys': { keys: this.keys.map(({ jwk }) => jwk) },
    };
    const said = this.says.get(path) ?? usual[path];
    response.writeHead(said === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(typeof said === 'string' ? said : JSON.stringify(said ?? {}));
  }

  async add(kid: string, alg?: string): Promise<IssuedKey> {
    const key = await makeKey(kid, alg);
    this.keys.push(key);
    return key;
  }

  /** The yaml of a policy of the usual workload. */
  policy(more: Json = {}): Json {
    return {
      id: 'ci',
      issuer: this.url,
      audience: AUDIENCE,
      claims: { sub: 'repo:acme/app:*' },
      key: KEY_HASH,
      ...more,
    };
  }

  /** What lets the gateway reach it. */
  get egress(): Json {
    return { networks: ['127.0.0.1/32'], ports: [Number(new URL(this.url).port)] };
  }

  /** A token of the first key, unless another is given. */
  token(gateway: Pick<Gateway, 'clock'>, more: JWTPayload = {}, key = this.keys[0]!): Promise<string> {
    return sign(key, claimsAt(gateway.clock.now(), this.url, more));
  }
}

export async function startIssuer(test: Pick<TestContext, 'after'>): Promise<Issuer> {
  const issuer = new Issuer();
  const server = http.createServer((request, response) => issuer.answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return issuer;
}

export interface Exchanged {
  status: number;
  headers: Headers;
  body: Json;
}

export const FORM = {
  federation_policy_id: 'ci',
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
};

/** @param more fields that extend or replace the usual ones; undefined leaves one out */
export function exchange(
  gateway: Pick<Gateway, 'api'>,
  subjectToken: string,
  more: Record<string, string | undefined> = {},
): Promise<Exchanged> {
  const fields = Object.entries({ ...FORM, subject_token: subjectToken, ...more });
  const given = fields.filter((field): field is [string, string] => field[1] !== undefined);
  return postForm(gateway, new URLSearchParams(given).toString());
}

export async function postForm(gateway: Pick<Gateway, 'api'>, body: string): Promise<Exchanged> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const response = await fetch(`${gateway.api}/oauth/token`, { method: 'POST', headers, body });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

/** The access token of an exchange that succeeds. */
export async function accessToken(gateway: Pick<Gateway, 'api'>, subjectToken: string, policy = 'ci'): Promise<string> {
  const { status, body } = await exchange(gateway, subjectToken, { federation_policy_id: policy });
  assert.equal(status, 200, JSON.stringify(body));
  return body.access_token;
}

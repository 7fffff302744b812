/** A gateway whose keys are given guardrails, and requests with them. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { type Gateway, type GatewayOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, type Json, type TeamKey } from '../workspaces/control.ts';

export interface GuardedKey extends TeamKey {
  guardrailId: string;
  /** Any operation with this key. */
  post(
    path: string,
    body: Json,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Json; headers: Headers }>;
}

export async function startGuarded(test: Parameters<typeof startGateway>[0], options: GatewayOptions) {
  const gateway = await startGateway(test, options);
  const control = controlOf(gateway);
  return {
    gateway,
    control,
    /** A key with a guardrail of its own. */
    async guarded(rules: Json): Promise<GuardedKey> {
      const made = await control.call('POST', '/guardrails', { name: 'test', ...rules });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      const guardrailId = made.body.data.id;
      const key = await control.keyIn(undefined, 'guarded');
      const path = `/guardrails/${guardrailId}/assignments/keys`;
      assert.deepEqual((await control.call('POST', path, { key_hashes: [key.hash] })).body, { assigned_count: 1 });
      return {
        ...key,
        guardrailId,
        post: (route, body, headers) => postWith(gateway, key.token, route, body, headers),
      };
    },
  };
}

export async function postWith(
  gateway: Pick<Gateway, 'post'>,
  token: string,
  route: string,
  body: Json,
  headers: Record<string, string> = {},
) {
  const reply = await gateway.post(route, body, { authorization: `Bearer ${token}`, ...headers });
  const text = await reply.text();
  const isJson = reply.headers.get('content-type')?.includes('json');
  return { status: reply.status, headers: reply.headers, body: isJson ? JSON.parse(text) : text };
}

/** Under another of the gateway's names, which `fetch` does not let one choose. */
export async function postThrough(
  { api }: Pick<Gateway, 'api'>,
  host: string,
  token: string,
  route: string,
  body: Json,
): Promise<{ status: number; body: string }> {
  const headers = { host, authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const request = http.request(`${api}${route}`, { method: 'POST', headers }, (reply) => {
      let text = '';
      reply.setEncoding('utf8');
      reply.on('data', (piece) => {
        text += piece;
      });
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, body: text }));
    });
    request.on('error', reject);
    request.end(JSON.stringify(body));
  });
}

/** Bodies that an upstream got since. */
export function sentTo({ upstream }: Gateway, key: string): () => Json[] {
  const before = upstream.requests(key).length;
  return () =>
    upstream
      .requests(key)
      .slice(before)
      .map(({ json }) => json);
}

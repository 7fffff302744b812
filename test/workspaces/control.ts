/** The control plane as an administrator uses it. */
import assert from 'node:assert/strict';
import { connect } from '../../src/testing/database/rows.ts';
import { type Gateway, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
export type Json = any;

export interface Answered {
  status: number;
  body: Json;
}

export interface TeamKey {
  id: number;
  hash: string;
  token: string;
  /** A chat completion with this key. */
  ask(body: Json): Promise<Answered>;
}

export function controlOf(gateway: Pick<Gateway, 'api'>) {
  const call = async (method: string, path: string, body?: Json, token = MANAGEMENT_KEY): Promise<Answered> => {
    const response = await fetch(gateway.api + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  return {
    call,
    /** Makes a workspace. */
    async made(body: Json): Promise<Json> {
      const answer = await call('POST', '/workspaces', body);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      return answer.body.data;
    },
    async refused(pending: Promise<Answered>, status: number, message: RegExp): Promise<Json> {
      const { status: is, body } = await pending;
      assert.equal(is, status, JSON.stringify(body));
      assert.equal(body.error.code, status);
      assert.match(body.error.message, message);
      return body.error;
    },
    /** Makes a key in a workspace; in the default one when none is given. */
    async keyIn(workspaceId: string | undefined, name: string, more: Json = {}): Promise<TeamKey> {
      const answer = await call('POST', '/keys', { name, ...(workspaceId && { workspace_id: workspaceId }), ...more });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      const { key: token, data } = answer.body;
      return {
        id: data.id,
        hash: data.hash,
        token,
        ask: (body) =>
          call('POST', '/chat/completions', { messages: [{ role: 'user', content: 'hi' }], ...body }, token),
      };
    },
  };
}

/** What no operation can do. */
export async function inDatabase({ target }: Pick<Gateway, 'target'>, statements: readonly string[]): Promise<void> {
  const client = await connect(target);
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The vault of a workspace as a client uses it. */
import assert from 'node:assert/strict';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../workspaces/control.ts';

export interface VaultAnswer {
  status: number;
  /** Undefined for an empty body. */
  body: Json;
}

export function vaultOf({ api }: Pick<Gateway, 'api'>, token = INFERENCE_KEY) {
  const call = async (method: string, path: string, body?: Json): Promise<VaultAnswer> => {
    const response = await fetch(`${api}/vault/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  return {
    call,
    /** Stores a secret. */
    async put(name: string, value: string, hosts: readonly string[] = ['api.test']): Promise<Json> {
      const { status, body } = await call('PUT', `secrets/${name}`, { value, hosts });
      assert.equal(status, 200, JSON.stringify(body));
      return body.data;
    },
    async list(query = ''): Promise<Json> {
      const { status, body } = await call('GET', `secrets${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    async refused(pending: Promise<VaultAnswer>, status: number, message: RegExp): Promise<Json> {
      const answer = await pending;
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.match(answer.body.error.message, message);
      return answer.body.error;
    },
  };
}

/** The newest audit entries first. */
export async function auditOf({ get }: Pick<Gateway, 'get'>, type: string): Promise<Json[]> {
  const { data } = (await (await get('/audit?limit=100', MANAGEMENT_KEY)).json()) as Json;
  return data.filter((entry: Json) => entry.resource_type === type);
}

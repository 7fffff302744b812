/** Interns as a client uses them. */
import assert from 'node:assert/strict';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { type Gateway, INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../workspaces/control.ts';

export interface InternAnswer {
  status: number;
  body: Json;
}

export function internsOf({ api }: Pick<Gateway, 'api'>, token = INFERENCE_KEY) {
  const call = async (method: string, path: string, body?: Json, headers: Json = {}): Promise<InternAnswer> => {
    const response = await fetch(`${api}/interns${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  const shown = async (id: string): Promise<Json> => {
    const { status, body } = await call('GET', `/${id}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  return {
    call,
    shown,
    async made(body: Json): Promise<Json> {
      const answer = await call('POST', '', body);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      return answer.body;
    },
    /** The error, whose metadata must name the reason. */
    async refused(pending: Promise<InternAnswer>, status: number, reason: string, message = /./): Promise<Json> {
      const { status: is, body } = await pending;
      assert.deepEqual(
        [is, body.error?.code, body.error?.metadata?.reason],
        [status, status, reason],
        JSON.stringify(body),
      );
      assert.deepEqual(Object.keys(body), ['error']);
      assert.equal(typeof body.error.metadata.retryable, 'boolean');
      assert.match(body.error.message, message);
      return body.error;
    },
    /** Once it is in the state. */
    async reaches(id: string, status: string, withinMs?: number): Promise<Json> {
      const reached = async () => {
        const intern = await shown(id);
        return intern.status === status && intern;
      };
      return until(reached, `the intern is ${status}`, withinMs);
    },
    async ends(id: string): Promise<void> {
      await until(async () => (await call('GET', `/${id}`)).status === 404, 'the intern is gone');
    },
  };
}

/** What no operation shows. */
export async function rowsOf({ target }: Pick<Gateway, 'target'>, sql: string, values: Json[] = []): Promise<Json[]> {
  const client = await connect(target);
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** What all model calls of an intern were charged, as the ledger has it; `cost` in nano-dollars. */
export async function chargedFor(gateway: Pick<Gateway, 'target'>, internId: string): Promise<Json> {
  const sql = `select coalesce(sum(input_tokens + cache_read_tokens), 0)::int as prompt_tokens,
      coalesce(sum(output_tokens), 0)::int as completion_tokens,
      coalesce(sum(input_tokens + cache_read_tokens + output_tokens), 0)::int as total_tokens,
      coalesce(sum(cost_nano), 0) as cost
    from generations g join api_keys k on k.id::text = g.key_id where k.intern_id = $1`;
  return (await rowsOf(gateway, sql, [internId]))[0];
}

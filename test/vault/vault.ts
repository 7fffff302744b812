/** The vault of a workspace as a client uses it. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { Sealing } from '../../src/sealing/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { head, RawClient, type RawResponse } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
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

/** Sends the head of a request and a part of its body, and nothing more until the gateway answers. */
export async function stopsArriving(
  { url, clock }: Pick<Gateway, 'url' | 'clock'>,
  route: string,
  token = INFERENCE_KEY,
): Promise<RawResponse> {
  const client = await RawClient.open(Number(new URL(url).port));
  const from = [`Authorization: Bearer ${token}`, 'Content-Type: application/json', 'Content-Length: 100'];
  await client.send(head([`${route} HTTP/1.1`, ...from, 'Expect: 100-continue']));
  // The gateway has checked the key and waits for the body. Had the clock jumped before, the database would have been
  // silent for minutes while the key was looked up, which is 503.
  assert.equal((await client.response()).status, 100);
  await client.send('{"value": "half of');
  let answered = false;
  const response = client.response().finally(() => {
    answered = true;
  });
  await until(() => {
    clock.jump(30_000);
    return answered;
  }, 'the slow client is answered');
  client.leave();
  return response;
}

/** The newest audit entries first. */
export async function auditOf({ get }: Pick<Gateway, 'get'>, type: string): Promise<Json[]> {
  const { data } = (await (await get('/audit?limit=100', MANAGEMENT_KEY)).json()) as Json;
  return data.filter((entry: Json) => entry.resource_type === type);
}

/** The gateway's database as another process opens it, such as a command of the operator. */
export async function partsOf(
  test: Pick<TestContext, 'after'>,
  { target, config }: Pick<Gateway, 'target' | 'config'>,
) {
  const shared = { clock: systemClock, log: silentLog };
  const database = await openDatabase({ target, ...shared });
  const changes = await openChanges({ target, database, ...shared });
  test.after(async () => {
    await changes.close();
    await database.close();
  });
  /** Each with a new memory of keys. */
  return () => ({
    ...shared,
    database,
    changes,
    sealing: new Sealing({ database, clock: systemClock, settings: config.sealing }),
  });
}

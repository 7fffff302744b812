/** Access rules over HTTP, with an operation for each kind of rule. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Type } from 'typebox';
import type { Caller } from '../../src/access/index.ts';
import { createPermit } from '../../src/access/permit.ts';
import { systemClock } from '../../src/base/clock.ts';
import { GatewayError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { type AccessRule, ANY_KEY, ANYONE, type CallerKind, INFERENCE } from '../../src/http/access-rule.ts';
import type { Operation } from '../../src/http/operation.ts';
import { createHttpServer } from '../../src/http/server.ts';

const KINDS: readonly CallerKind[] = ['inference', 'management', 'scim'];

/** `workspaceId` says which programme and which thing it has. */
const callerOf = (kind: CallerKind, workspaceId: string) => ({ kind, workspaceId }) as Caller;

const permit = createPermit({
  programmes: { trial: ({ workspaceId }) => workspaceId.startsWith('trial') },
  scopes: { ownThing: ({ workspaceId }, { thing }) => workspaceId.endsWith(`-${thing}`) },
  regionOf: (host) => (host?.startsWith('us.') ? 'us' : 'global'),
});

/** Each rule at a path of its own. */
const RULES: Record<string, AccessRule> = {
  '/open': ANYONE,
  '/open-global': { ...ANYONE, regions: ['global'] },
  '/keys-only': ANY_KEY,
  '/global-only': { ...INFERENCE, regions: ['global'] },
  '/trial': { ...INFERENCE, programme: 'trial', regions: ['global'] },
  '/trial/{thing}': { ...INFERENCE, programme: 'trial', scope: 'ownThing' },
};

interface Answer {
  status: number;
  body: { error: { message: string; metadata?: unknown } };
}

/** Serves the rules; the bearer token names the caller: `inference trial-a`. */
async function serve(t: TestContext) {
  const operations = Object.entries(RULES).map(
    ([path, access]): Operation<Caller> => ({
      ...{ id: path, method: 'GET', path, summary: 'x', tag: 'x', access },
      ...(path.includes('{') && { params: Type.Object({ thing: Type.String() }) }),
      query: Type.Object({}, { additionalProperties: false }),
      replies: { 200: { description: 'x' } },
      handle: (exchange) => exchange.reply(200, {}),
    }),
  );
  const server = createHttpServer<Caller>({
    operations,
    authenticate({ authorization = '' }) {
      const [, kind, workspaceId] = /^Bearer (\w+) ([\w-]+)$/.exec(authorization) ?? [];
      if (kind === undefined) throw new GatewayError('authentication', 'No API key.');
      return callerOf(kind as CallerKind, workspaceId!);
    },
    permit,
    clock: systemClock,
    log: silentLog,
  });
  const { port }: AddressInfo = await server.listen(0, '127.0.0.1');
  t.after(() => server.drain(0));
  return (path: string, who?: string, host = 'global.test'): Promise<Answer> => {
    const headers = { host, ...(who !== undefined && { authorization: `Bearer ${who}` }) };
    return new Promise((resolve, reject) => {
      const request = http.get({ port, path: `/api/v1${path}`, headers }, (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode!, body: JSON.parse(text) as Answer['body'] }));
      });
      request.on('error', reject);
    });
  };
}

test('outside of its programme an operation answers 404 without metadata, whatever the kind of key, host and input', async (t) => {
  const ask = await serve(t);
  for (const path of ['/trial', '/trial/a', '/trial?unknown=1']) {
    for (const kind of KINDS) {
      for (const host of ['global.test', 'us.test']) {
        const { status, body } = await ask(path, `${kind} other-a`, host);
        assert.equal(status, 404, `${path} ${kind} ${host}`);
        assert.deepEqual(body.error, { code: 404, message: 'There is no such resource.' });
      }
    }
    assert.equal((await ask(path)).status, 401);
  }
  assert.equal((await ask('/trial', 'inference trial-a')).status, 200);
  assert.equal((await ask('/trial', 'management trial-a')).status, 403);
});

test('a confined key gets 404 for the resources of others', async (t) => {
  const ask = await serve(t);
  assert.equal((await ask('/trial/a', 'inference trial-a')).status, 200);
  assert.equal((await ask('/trial/b', 'inference trial-a')).status, 404);
  assert.equal((await ask('/trial/%61', 'inference trial-a')).status, 200);
});

test('a root that does not serve an operation answers 403 before it reads the input, with and without a key', async (t) => {
  const ask = await serve(t);
  assert.equal((await ask('/global-only', 'inference other-a')).status, 200);
  assert.equal((await ask('/global-only?unknown=1', 'inference other-a')).status, 400);
  const { status, body } = await ask('/global-only?unknown=1', 'inference other-a', 'us.test:8484');
  assert.equal(status, 403);
  assert.match(body.error.message, /only served by the global host/);
  assert.equal((await ask('/global-only', undefined, 'us.test')).status, 401);
  assert.equal((await ask('/open-global', undefined, 'us.test')).status, 403);
  assert.equal((await ask('/open-global')).status, 200);
  assert.equal((await ask('/keys-only', 'management other-a', 'us.test')).status, 200);
});

test('an operation for anyone ignores keys', async (t) => {
  const ask = await serve(t);
  assert.equal((await ask('/open')).status, 200);
  assert.equal((await ask('/open', 'scim other-a')).status, 200);
});

/** The log shows no text that a caller put into a path or a query, whatever the operation and the outcome. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { API_PREFIXES } from '../../src/http/router.ts';
import { type OperationParts, operations } from '../../src/operations.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';

const lines: string[] = [];
const log = createLog({ stream: { write: (text: string) => lines.push(...text.trim().split('\n')) }, level: 'debug' });
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {} }, log },
);

const SECRET = 'hunter2-Partner_Secret';
const nothing: unknown = new Proxy(() => {}, { get: () => nothing });
const all = operations(nothing as OperationParts);
const pathsOf = ({ root, path }: { root?: boolean; path: string }) =>
  root ? [path] : API_PREFIXES.map((prefix) => prefix + path);

async function logged(
  method: string,
  target: string,
  key: string | undefined,
): Promise<{ text: string; paths: unknown[] }> {
  lines.length = 0;
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const body = method === 'GET' || method === 'DELETE' || method === 'HEAD' || method === 'OPTIONS' ? undefined : '{}';
  const init = {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body }),
  };
  await (await fetch(gateway.url + target, init)).text();
  log.flush();
  const requests = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request');
  return { text: lines.join('\n'), paths: requests.map(({ path }) => path) };
}

test('a secret in any parameter of any operation is in no log line, and the line has the template of the path', async () => {
  const parameterized = all.filter(({ path }) => path.includes('{'));
  assert.ok(parameterized.length > 30);
  for (const operation of parameterized) {
    for (const pattern of pathsOf(operation)) {
      const target = pattern.replace(/\{\w+\}/g, SECRET);
      for (const key of [MANAGEMENT_KEY, INFERENCE_KEY, undefined]) {
        const { text, paths } = await logged(operation.method, `${target}?q=${SECRET}&limit=${SECRET}`, key);
        assert.deepEqual(paths, [pattern], operation.id);
        assert.ok(!text.includes(SECRET), `${operation.id}: ${text}`);
      }
    }
  }
});

test('paths that lead nowhere are logged with the segments that operations have, and a star for all others', async () => {
  const cases: [string, string, string][] = [
    ['GET', `/${SECRET}`, '/*'],
    ['GET', `/api/v1/${SECRET}/keys`, '/api/v1/*/keys'],
    ['GET', `/v1/keys/${SECRET}/${SECRET}`, '/v1/keys/*/*'],
    ['POST', '/api/v1/v1/messages', '/api/v1/v1/messages'],
    ['POST', `/api/v1/chat/completions/${SECRET}`, '/api/v1/chat/completions/*'],
    ['DELETE', `/api/v1/models/${SECRET}/x/endpoints`, '/api/v1/models/{author}/{slug}/endpoints'],
    ['OPTIONS', `/api/v1/keys/${SECRET}`, '/api/v1/keys/*'],
    ['GET', `/api/v1/keys/%zz${SECRET}`, '/api/v1/keys/*'],
    ['GET', `/api/v1/%6beys/${SECRET}`, '/api/v1/keys/{hash}'],
    ['GET', `/scim/v2/Users/${SECRET}/${SECRET}`, '/scim/v2/Users/*/*'],
    ['GET', `/scim/v2//Users//${SECRET}/`, '/scim/v2/Users/{id}'],
    ['GET', `/api/v1/${`${SECRET}/`.repeat(200)}`, `/api/v1/${'*/'.repeat(8)}*`],
  ];
  for (const [method, target, shown] of cases) {
    const { text, paths } = await logged(method, target, MANAGEMENT_KEY);
    assert.deepEqual(paths, [shown], target);
    assert.ok(!text.includes(SECRET), text);
  }
});

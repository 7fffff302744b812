/** A customer's credential is in no answer, no line of the log and no row, whatever is asked and whatever goes wrong. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { wholeDatabase } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';

const CANARY = 'sk-canary-0123456789-of-a-customer';
const OTHER = 'sk-canary-9876543210-of-a-customer';
/** What neither of them may leave anywhere: more than a label shows. */
const TRACE = /canary-\d{4}/;

async function scene(t: TestContext) {
  const lines: string[] = [];
  const log = createLog({ stream: { write: (line: string) => lines.push(line) > 0 } as never, level: 'debug' });
  const gateway = await startGateway(t, { log, providers: { a: {}, b: {} } });
  const told: string[] = [];
  const send = async (method: string, route: string, body?: string, token = MANAGEMENT_KEY) => {
    const response = await fetch(gateway.api + route, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    told.push(`${method} ${route.replace(TRACE, '')} ${JSON.stringify([...response.headers])} ${text}`);
    return { status: response.status, text };
  };
  const clean = async () => {
    log.flush();
    for (const text of [...told, ...lines]) assert.ok(!TRACE.test(text), text.slice(0, 2_000));
    assert.ok(lines.length > 0);
    const rows = await wholeDatabase(gateway.target);
    assert.ok(!TRACE.test(rows) && !rows.includes(Buffer.from(CANARY).toString('hex')));
  };
  return { gateway, send, clean, lines, control: controlOf(gateway) };
}

const idOf = ({ text }: { text: string }): string => (JSON.parse(text) as Json).data.id;

test('in every operation on BYOK credentials, right and wrong', async (t) => {
  const { send, clean } = await scene(t);
  const body = (more: Json = {}) => JSON.stringify({ provider: 'a', key: CANARY, ...more });
  const id = idOf(await send('POST', '/byok', body({ name: 'ours' })));
  const attempts: [string, string, string?, string?][] = [
    ['GET', '/byok'],
    ['GET', `/byok/${id}`],
    ['PATCH', `/byok/${id}`, JSON.stringify({ key: OTHER })],
    ['PATCH', `/byok/${id}`, JSON.stringify({ key: `${OTHER} with spaces` })],
    ['PATCH', `/byok/${id}`, JSON.stringify({ key: { inside: OTHER } })],
    ['PATCH', '/byok/00000000-0000-7000-8000-000000000000', JSON.stringify({ key: OTHER })],
    ['POST', '/byok', body({ provider: 'nobody' })],
    ['POST', '/byok', body({ key: [CANARY] })],
    ['POST', '/byok', body({ key: CANARY.repeat(900) })],
    ['POST', '/byok', body({ key: `{"type":"service_account","private_key":"${CANARY}"}`, provider: 'google-vertex' })],
    ['POST', '/byok', body({ key: `{${CANARY}`, provider: 'google-vertex' })],
    ['POST', '/byok', body({ key: `{"accessKeyId":"${CANARY}"}`, provider: 'amazon-bedrock' })],
    ['POST', '/byok', body({ key: `{"api_key":"x","endpoint":"https://${CANARY}.example"}`, provider: 'azure' })],
    ['POST', '/byok', `{"provider":"a","key":"${CANARY}"`],
    ['POST', '/byok', `${CANARY}{}`],
    ['POST', '/byok', body(), CANARY],
    ['GET', `/byok?key=${CANARY}`],
    ['GET', '/byok', undefined, CANARY],
    ['GET', '/audit?limit=100'],
    ['GET', '/keys'],
    ['DELETE', `/byok/${id}`],
    ['GET', '/audit?limit=100'],
  ];
  const statuses: number[] = [];
  for (const attempt of attempts) statuses.push((await send(...attempt)).status);
  assert.deepEqual(
    statuses,
    [200, 200, 200, 400, 400, 404, 400, 400, 400, 400, 400, 400, 400, 400, 400, 401, 400, 401, 200, 200, 200, 200],
  );
  await clean();
});

test('where the database refuses a row and quotes its values, or cannot be reached', async (t) => {
  const { gateway, send, clean, lines } = await scene(t);
  const id = idOf(await send('POST', '/byok', JSON.stringify({ provider: 'a', key: CANARY, name: 'first' })));
  await inDatabase(gateway, [`alter table byok_keys add constraint no_boom check (name <> 'boom')`]);
  const refused = await send('POST', '/byok', JSON.stringify({ provider: 'a', key: OTHER, name: 'boom' }));
  assert.equal(refused.status, 500);
  const patched = await send('PATCH', `/byok/${id}`, JSON.stringify({ key: OTHER, name: 'boom' }));
  assert.equal(patched.status, 500);
  assert.ok(lines.some((line) => line.includes('no_boom')));
  await inDatabase(gateway, ['alter table byok_keys rename column label to label_gone']);
  for (const method of ['GET', 'POST']) {
    const body = method === 'POST' ? JSON.stringify({ provider: 'a', key: OTHER }) : undefined;
    assert.equal((await send(method, '/byok', body)).status, 500);
  }
  await clean();
});

test('in what a provider says of it, in answers, streams and the records of requests', async (t) => {
  const { gateway, send, clean, control } = await scene(t);
  await send('POST', '/byok', JSON.stringify({ provider: 'a', key: CANARY, is_byok_only: true }));
  const saying = (status: number) => ({
    ...wholeOf({ error: { message: `Incorrect API key provided: ${CANARY}`, param: CANARY, code: 'invalid_api_key' } }),
    status,
  });
  const cut = {
    headers: { 'content-type': 'text/event-stream' },
    chunks: [`data: ${JSON.stringify({ error: { message: `bad ${CANARY}`, code: 400 } })}\n\n`],
  };
  gateway.upstream.script('a', [...[400, 401, 403, 404, 422, 429, 500].map(saying), cut, { ...cut, repeat: true }]);
  const { token } = await control.keyIn(undefined, 'caller');
  const asked = { model: 'test/a', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 };
  for (let n = 0; n < 9; n++) {
    const debug = { echo_upstream_body: true };
    const more = n > 6 ? { stream: true } : {};
    await send('POST', '/chat/completions', JSON.stringify({ ...asked, ...more, ...(n % 2 && { debug }) }), token);
    gateway.clock.jump(120_000);
  }
  await send('GET', '/activity');
  assert.ok(gateway.upstream.requests('a').length > 3);
  await clean();
});

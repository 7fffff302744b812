/** Sessions of the console: what signs in, what a session may do, and what another site cannot do with it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ConsoleSessions } from '../../src/console/index.ts';
import { connect } from '../../src/testing/database/rows.ts';
import type { Gateway } from '../../src/testing/gateway/gateway.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { inDatabase } from '../workspaces/control.ts';

type Json = ReturnType<typeof JSON.parse>;

let gateway: Gateway;
const closers: (() => Promise<void>)[] = [];
const cleanup = { after: (close: unknown) => void closers.push(close as () => Promise<void>) };
before(async () => {
  gateway = await startGateway(cleanup, { providers: { acme: {} } });
});
after(async () => {
  for (const close of closers.reverse()) await close();
});

const DAY_MS = 86_400_000;
const MARK = { 'x-gatehouse-console': '1' };
const JSON_BODY = { 'content-type': 'application/json' };

interface Answer {
  status: number;
  body: Json;
  cookie: string;
  setCookie: string;
}

async function send(
  method: string,
  path: string,
  { body, headers = {}, at = gateway }: { body?: unknown; headers?: Record<string, string>; at?: Gateway } = {},
): Promise<Answer> {
  const response = await fetch(at.url + path, {
    method,
    headers: { ...(body !== undefined && JSON_BODY), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const setCookie = response.headers.get('set-cookie') ?? '';
  return { status: response.status, body: JSON.parse(text), setCookie, cookie: setCookie.split(';')[0] ?? '' };
}

/** Signs in as the console does, and returns the headers of its later requests. */
async function signedIn(key = MANAGEMENT_KEY, at = gateway) {
  const headers = { ...MARK, origin: at.url, 'sec-fetch-site': 'same-origin' };
  const answer = await send('POST', '/console/session', { body: { key }, headers, at });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { ...headers, cookie: answer.cookie };
}

async function madeKey(body: Json): Promise<Json> {
  const headers = { authorization: `Bearer ${MANAGEMENT_KEY}` };
  const answer = await send('POST', '/api/v1/keys', { body, headers });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}

test('a management key signs in; the cookie is out of reach of scripts and other sites', async () => {
  const headers = { ...MARK, origin: gateway.url };
  const { status, body, setCookie } = await send('POST', '/console/session', {
    body: { key: MANAGEMENT_KEY },
    headers,
  });
  assert.equal(status, 200);
  assert.equal(body.data.session.inference_key, null);
  assert.ok(!JSON.stringify(body).includes(MANAGEMENT_KEY));
  const { port } = new URL(gateway.url);
  assert.match(
    setCookie,
    new RegExp(
      `^gatehouse_session_${port}_i[0-9a-f]{8}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800$`,
    ),
  );
});

test('behind TLS the cookie is secure and bound to the host, and below a prefix to its path', async (t) => {
  const proxied = await startGateway(t, { yaml: { trusted_proxies: ['127.0.0.1'] } });
  const body = { key: MANAGEMENT_KEY };
  const headers = { ...MARK, origin: 'https://gateway.test' };
  const plain = await send('POST', '/console/session', { body, headers, at: proxied });
  assert.match(
    plain.setCookie,
    /^__Host-gatehouse_session_i[0-9a-f]{8}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800; Secure$/,
  );
  const below = await send('POST', '/console/session', {
    ...{ body, at: proxied },
    headers: { ...headers, 'x-forwarded-prefix': '/llm' },
  });
  assert.match(below.setCookie, /^__Secure-gatehouse_session_i[0-9a-f]{8}=[\w-]{43}; Path=\/llm\/; HttpOnly; /);
});

test('a cookie that another host of the domain can set does not replace the session', async () => {
  const headers = { ...MARK, origin: 'https://gateway.test' };
  const cookies = [];
  for (let at = 0; at < 2; at += 1) {
    cookies.push((await send('POST', '/console/session', { body: { key: MANAGEMENT_KEY }, headers })).cookie);
  }
  const [own = '', planted = ''] = cookies.map((cookie) => cookie.split('=')[1]);
  const shown = async (cookie: string) =>
    (await send('GET', '/console/session', { headers: { ...MARK, cookie } })).body;
  assert.equal((await shown(`gatehouse_session=${planted}`)).data.session, null);
  await send('DELETE', '/console/session', {
    headers: { ...headers, cookie: `gatehouse_session=${planted}; __Host-gatehouse_session=${own}` },
  });
  assert.equal((await shown(`__Host-gatehouse_session=${own}`)).data.session, null);
  assert.notEqual((await shown(`__Host-gatehouse_session=${planted}`)).data.session, null);
});

test('the session has the rights of its key, and its requests are entered as those of the key', async () => {
  const headers = await signedIn();
  const made = await send('POST', '/api/v1/keys', { body: { name: 'by the console' }, headers });
  assert.equal(made.status, 201);
  const [entry] = (await send('GET', '/api/v1/audit?limit=1', { headers })).body.data;
  const { data: key } = (await send('GET', '/api/v1/key', { headers })).body;
  assert.deepEqual([entry.action, entry.actor.key_label], ['key.created', key.label]);
  assert.equal(key.is_management_key, true);
  const scim = await send('GET', '/scim/v2/Users', { headers });
  assert.equal(scim.status, 403);
});

test('without an inference key models cannot be run; with one they are, for that key', async () => {
  const headers = await signedIn();
  const body = { model: 'test/acme', messages: [{ role: 'user', content: 'hi' }] };
  const refused = await send('POST', '/api/v1/chat/completions', { body, headers });
  assert.equal(refused.status, 403);
  assert.match(refused.body.error.message, /needs an inference key/);
  const { key, data } = await madeKey({ name: 'playground' });
  const chosen = await send('PUT', '/console/session/inference-key', { body: { key }, headers });
  assert.equal(chosen.body.data.session.inference_key.hash, data.hash);
  assert.equal((await send('GET', '/api/v1/batches', { headers })).status, 200);
  assert.equal((await send('GET', '/api/v1/keys', { headers })).status, 200);
  const wrong = await send('PUT', '/console/session/inference-key', { body: { key: MANAGEMENT_KEY }, headers });
  assert.equal(wrong.status, 403);
  const disabled = { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` }, body: { disabled: true } };
  await send('PATCH', `/api/v1/keys/${data.hash}`, disabled);
  const state = await send('GET', '/console/session', { headers });
  assert.equal(state.body.data.session.inference_key, null);
});

test('only a management key signs in', async () => {
  for (const [body, status] of [
    [{ key: INFERENCE_KEY }, 403],
    [{ key: 'sk-unknown' }, 401],
    [{ key: 'a\u0000b' }, 400],
    [{ key: 'not ascii ä' }, 401],
    [{ code: 'unknown' }, 401],
    [{}, 400],
    [{ key: MANAGEMENT_KEY, code: 'both' }, 400],
    [{ key: 7 }, 400],
  ] as const) {
    const answer = await send('POST', '/console/session', { body, headers: MARK });
    assert.equal(answer.status, status, JSON.stringify(body));
    assert.equal(answer.setCookie, '');
  }
});

test('an origin that names no site is refused', async () => {
  for (const origin of ['null', 'http://[', 'http://a:99999', 'ftp://a', 'http://a/path']) {
    const answer = await send('POST', '/console/session', {
      body: { key: MANAGEMENT_KEY },
      headers: { ...MARK, origin },
    });
    assert.equal(answer.status, 403, origin);
  }
});

test('another site can neither use a session nor read who is signed in', async () => {
  const { cookie, ...own } = await signedIn();
  const foreign: Record<string, string>[] = [
    { cookie },
    { cookie, ...MARK, 'sec-fetch-site': 'cross-site' },
    { cookie, ...MARK, 'sec-fetch-site': 'same-site' },
    { cookie, ...MARK, 'sec-fetch-site': 'none' },
    { cookie, ...MARK, origin: 'https://evil.test' },
    { cookie, ...MARK, origin: 'null' },
    { cookie: `${cookie}x`, ...own },
    { cookie: cookie.replace('gatehouse_session', 'session'), ...own },
    { ...own },
  ];
  for (const headers of foreign) {
    const changed = await send('POST', '/api/v1/keys', { body: { name: 'forged' }, headers });
    assert.equal(changed.status, 401, JSON.stringify(headers));
    const state = await send('GET', '/console/session', { headers });
    assert.ok(state.status === 401 || state.body.data.session === null, JSON.stringify(headers));
    assert.equal((await send('DELETE', '/console/session', { headers })).status, 401);
  }
  const login = await send('POST', '/console/session', {
    body: { key: MANAGEMENT_KEY },
    headers: { ...MARK, origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' },
  });
  assert.equal(login.status, 403);
  const preflight = await fetch(`${gateway.url}/api/v1/keys`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://evil.test',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-gatehouse-console',
    },
  });
  assert.equal(preflight.headers.get('access-control-allow-credentials'), null);
  assert.equal((await send('GET', '/api/v1/key', { headers: { cookie, ...own } })).status, 200);
});

test('a key in the request decides, whatever session comes with it', async () => {
  const headers = { ...(await signedIn()), authorization: `Bearer ${INFERENCE_KEY}` };
  assert.equal((await send('GET', '/api/v1/keys', { headers })).status, 403);
});

test('signing out ends the session at once, and removes the cookie', async () => {
  const headers = await signedIn();
  const { setCookie, body } = await send('DELETE', '/console/session', { headers });
  assert.match(setCookie, /=; Path=\/; HttpOnly; SameSite=Strict; Max-Age=0$/);
  assert.equal(body.data.session, null);
  assert.equal((await send('GET', '/api/v1/key', { headers })).status, 401);
});

test('a session outlives a restart, works at every process, and ends after a day without use or after seven', async (t) => {
  const first = await startGateway(t);
  const headers = await signedIn(MANAGEMENT_KEY, first);
  const second = await startGateway(t, { target: first.target });
  const statusAt = async (at: Gateway) => (await send('GET', '/api/v1/key', { headers: { ...headers }, at })).status;
  assert.deepEqual([await statusAt(first), await statusAt(second)], [200, 200]);
  for (let day = 0; day < 7; day++) {
    assert.equal(await statusAt(second), 200, `day ${day}`);
    second.clock.jump(DAY_MS - 60_000);
  }
  assert.equal(await statusAt(second), 200);
  second.clock.jump(8 * 60_000);
  assert.equal(await statusAt(second), 401);
  const unused = await signedIn(MANAGEMENT_KEY, first);
  first.clock.jump(DAY_MS + 1);
  assert.equal((await send('GET', '/api/v1/key', { headers: unused, at: first })).status, 401);
});

test('the session ends with its key', async (t) => {
  const own = await startGateway(t);
  const headers = await signedIn(MANAGEMENT_KEY, own);
  await inDatabase(own, [`update api_keys set disabled = true where kind = 'management'`]);
  const fresh = await startGateway(t, { target: own.target });
  const answer = await send('GET', '/api/v1/keys', { headers, at: fresh });
  assert.equal(answer.status, 401);
  assert.match(answer.body.error.message, /disabled/);
  assert.equal((await send('GET', '/console/session', { headers, at: fresh })).status, 401);
});

test('a session is stored as a hash, and entered in the audit log without its secret', async () => {
  const { cookie } = await signedIn();
  const token = cookie.split('=')[1] ?? '';
  const client = await connect(gateway.target);
  const stored = await client.query('select s::text as text from console_sessions s').finally(() => client.end());
  assert.ok(token.length === 43 && stored.rows.length > 0);
  assert.ok(!JSON.stringify(stored.rows).includes(token));
  const audit = await send('GET', '/api/v1/audit?resource_type=console_session&limit=1', {
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}` },
  });
  const [entry] = audit.body.data;
  assert.deepEqual([entry.action, entry.after.one_time_link], ['console_session.created', false]);
  assert.ok(!JSON.stringify(entry).includes(token));
});

test('a one-time link signs in once, within an hour, with both keys', async (t) => {
  const own = await startGateway(t, { env: { GATEHOUSE_MANAGEMENT_KEY: '', GATEHOUSE_INFERENCE_KEY: '' } });
  assert.ok(own.consoleCode, 'the first start made a link');
  const use = (code: string) => send('POST', '/console/session', { body: { code }, headers: MARK, at: own });
  const uses = await Promise.all([use(own.consoleCode), use(own.consoleCode), use(own.consoleCode)]);
  assert.deepEqual(uses.map(({ status }) => status).sort(), [200, 401, 401]);
  const { session } = uses.find(({ status }) => status === 200)?.body.data ?? {};
  assert.ok(session.management_key.hash && session.inference_key.hash);
  const late = await startGateway(t, { env: { GATEHOUSE_MANAGEMENT_KEY: '', GATEHOUSE_INFERENCE_KEY: '' } });
  late.clock.jump(3_600_001);
  const expired = await send('POST', '/console/session', { body: { code: late.consoleCode }, headers: MARK, at: late });
  assert.equal(expired.status, 401);
});

test('keys that the operator chose need no link', () => {
  assert.equal(gateway.consoleCode, undefined);
});

test('requests without a console header do not ask for a session', () => {
  const cookie = 'gatehouse_session=x';
  assert.equal(ConsoleSessions.isPresented({ cookie }), false);
  assert.equal(ConsoleSessions.isPresented({ ...MARK, cookie, authorization: 'Bearer x' }), false);
  assert.equal(ConsoleSessions.isPresented({ ...MARK, cookie }), true);
});

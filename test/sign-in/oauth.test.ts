/** OAuth with PKCE: an application sends a person to the consent page and comes back with a code for a key. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { connect } from '../../src/testing/database/rows.ts';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';

const VERIFIER = 'v'.repeat(43);
const S256 = createHash('sha256').update(VERIFIER).digest('base64url');
const CALLBACK = 'https://app.example.test/back?x=1';

/** A browser that has been shown the page. */
async function visit(gateway: Gateway, query: Record<string, string>) {
  const response = await fetch(`${gateway.url}/auth?${new URLSearchParams(query)}`, { redirect: 'manual' });
  const text = await response.text();
  const hidden = (name: string) =>
    (new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? '')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? '';
  const submit = (fields: Record<string, string>, headers: Record<string, string> = { cookie }) =>
    fetch(`${gateway.url}/auth`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({ request: hidden('request'), token: hidden('token'), ...fields }).toString(),
    });
  return { response, text, cookie, hidden, submit };
}

async function trade(gateway: Gateway, body: Json): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${gateway.api}/auth/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function codeFor(gateway: Gateway, body: Json): Promise<Json> {
  const { call } = controlOf(gateway);
  const answer = await call('POST', '/auth/keys/code', { callback_url: CALLBACK, ...body });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.data;
}

test('through the page to a key with everything that was requested, created by the person that allowed the application', async (t) => {
  const gateway = await startGateway(t);
  const { call, made } = controlOf(gateway);
  const { id: workspace } = await made({ name: 'Team', slug: 'team' });
  const expires = new Date(Math.floor(gateway.clock.now() / 1000) * 1000 + 86_400_000).toISOString();
  const page = await visit(gateway, {
    callback_url: CALLBACK,
    code_challenge: S256,
    code_challenge_method: 'S256',
    state: 'a&b',
    key_label: 'My <app>',
    limit: '2.5',
    usage_limit_type: 'weekly',
    expires_at: expires,
    workspace_id: workspace,
  });
  assert.equal(page.response.status, 200);
  assert.ok(page.text.includes('My &lt;app&gt;') && !page.text.includes('<app>'));
  assert.ok(!/<script|javascript:|\son\w+=/i.test(page.text));
  const left = await page.submit({ key: MANAGEMENT_KEY, decision: 'allow' });
  assert.equal(left.status, 303);
  const back = new URL(left.headers.get('location')!);
  assert.equal(back.origin + back.pathname, 'https://app.example.test/back');
  assert.equal(back.searchParams.get('x'), '1');
  assert.equal(back.searchParams.get('state'), 'a&b');
  const code = back.searchParams.get('code')!;
  const { status, body } = await trade(gateway, { code, code_verifier: VERIFIER, code_challenge_method: 'S256' });
  assert.equal(status, 200, JSON.stringify(body));
  const { body: mine } = await call('GET', '/key');
  assert.equal(body.user_id, mine.data.creator_user_id);
  const { body: key } = await call('GET', '/key', undefined, body.key);
  assert.deepEqual(
    [key.data.limit, key.data.limit_reset, key.data.expires_at, key.data.workspace_id, key.data.creator_user_id],
    [2.5, 'weekly', expires, workspace, mine.data.creator_user_id],
  );
  const [entry] = (await call('GET', '/audit?limit=1')).body.data;
  assert.deepEqual([entry.action, entry.actor.type], ['key.created', 'sign_in']);
  assert.equal(entry.after.name, 'My <app>');
});

test('the page runs no script, cannot be framed, and posts only to the gateway', async (t) => {
  const gateway = await startGateway(t);
  const { response } = await visit(gateway, { callback_url: 'http://localhost:3000/cb' });
  const policy = response.headers.get('content-security-policy')!;
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(policy, /form-action 'self' http:\/\/localhost:3000;/);
  assert.ok(!policy.includes('unsafe'));
  assert.equal(response.headers.get('x-frame-options'), 'DENY');
  assert.equal(response.headers.get('referrer-policy'), 'no-referrer');
  assert.match(response.headers.get('set-cookie')!, /HttpOnly; SameSite=Strict/);
});

test('a callback that is neither https nor this machine leads nowhere', async (t) => {
  const gateway = await startGateway(t);
  const wrong = [
    'http://app.example.test/',
    'javascript:alert(1)',
    'data:text/html,x',
    'myapp://back',
    '//evil.test',
    'https://user:pw@app.example.test/',
    'https://app.example.test/#x',
    'http://localhost.evil.test/',
    'ftp://localhost/',
    '"><script>alert(1)</script>',
    'https://app.example.test;sandbox/',
    "https://a'b/",
    'https://*/',
    'https://a,b.test/',
  ];
  for (const callback_url of wrong) {
    const { response, text } = await visit(gateway, { callback_url });
    assert.equal(response.status, 400, callback_url);
    assert.equal(response.headers.get('location'), null);
    assert.ok(!text.includes('<form') && !text.includes('<script'), callback_url);
    const { call, refused } = controlOf(gateway);
    await refused(call('POST', '/auth/keys/code', { callback_url }), 400, /callback_url/);
  }
  for (const callback_url of ['http://127.0.0.1:8080/x', 'http://localhost/', 'https://a.test'])
    await codeFor(gateway, { callback_url });
});

test('nothing that an application gives reaches a header as it is', async (t) => {
  const gateway = await startGateway(t);
  const callback_url = 'https://app.example.test/%0d%0aSet-Cookie:%20x=1?next=%0d%0a\r\nX-Evil: 1';
  const page = await visit(gateway, { callback_url, state: 's\r\nX-Evil: 1' });
  assert.equal(page.response.status, 200);
  const left = await page.submit({ key: MANAGEMENT_KEY, decision: 'allow' });
  assert.equal(left.status, 303);
  const back = left.headers.get('location')!;
  assert.ok(back.startsWith('https://app.example.test/%0d%0aSet-Cookie:%20x=1?next='), back);
  assert.equal(new URL(back).searchParams.get('state'), 's\r\nX-Evil: 1');
  assert.equal(left.headers.get('set-cookie'), null);
  assert.equal(left.headers.get('x-evil'), null);
});

test('a form that is not from the page, was altered, or comes too late gives nothing and leads nowhere', async (t) => {
  const gateway = await startGateway(t);
  const page = await visit(gateway, { callback_url: CALLBACK });
  const allow = { key: MANAGEMENT_KEY, decision: 'allow' };
  const other = await visit(gateway, { callback_url: CALLBACK });
  const altered = page.hidden('request').replace('app.example.test', 'evil.example.test');
  assert.notEqual(altered, page.hidden('request'));
  for (const attempt of [
    page.submit(allow, {}),
    page.submit(allow, { cookie: other.cookie }),
    page.submit(allow, { cookie: page.cookie, 'sec-fetch-site': 'cross-site' }),
    page.submit({ ...allow, request: altered }),
    page.submit({ ...allow, token: '' }),
    page.submit({ decision: 'deny' }, {}),
  ]) {
    const answer = await attempt;
    assert.equal(answer.status, 403);
    assert.equal(answer.headers.get('location'), null);
  }
  gateway.clock.jump(901_000);
  assert.equal((await page.submit(allow)).status, 403);
});

test('only a management key approves an application; a refusal reaches the callback', async (t) => {
  const gateway = await startGateway(t);
  const page = await visit(gateway, { callback_url: CALLBACK, state: 's' });
  for (const [key, status] of [
    [INFERENCE_KEY, 403],
    ['', 401],
    [`sk-svc-mgmt-v1-${'0'.repeat(64)}`, 401],
  ] as const) {
    const answer = await page.submit({ key, decision: 'allow' });
    assert.equal(answer.status, status);
    const text = await answer.text();
    assert.ok(text.includes('<form') && (key === '' || !text.includes(key)));
  }
  const denied = await page.submit({ decision: 'deny' });
  assert.equal(denied.headers.get('location'), `${CALLBACK}&state=s&error=access_denied`);
  assert.equal((await page.submit({ key: MANAGEMENT_KEY, decision: 'allow' })).status, 303);
});

test('each code challenge method: S256, plain, none; and each mismatch', async (t) => {
  const gateway = await startGateway(t);
  const s256 = { code_challenge: S256, code_challenge_method: 'S256' };
  const { id: first } = await codeFor(gateway, s256);
  assert.equal(
    (await trade(gateway, { code: first, code_verifier: VERIFIER, code_challenge_method: 'plain' })).status,
    400,
  );
  assert.equal((await trade(gateway, { code: first, code_verifier: S256 })).status, 403);
  assert.equal((await trade(gateway, { code: first })).status, 403);
  assert.equal((await trade(gateway, { code: first, code_verifier: VERIFIER })).status, 200);
  assert.equal((await trade(gateway, { code: first, code_verifier: VERIFIER })).status, 403, 'single use');
  const { id: plain } = await codeFor(gateway, { code_challenge: VERIFIER });
  assert.equal((await trade(gateway, { code: plain, code_verifier: 'other' })).status, 403);
  assert.equal(
    (await trade(gateway, { code: plain, code_verifier: VERIFIER, code_challenge_method: 'plain' })).status,
    200,
  );
  const { id: none } = await codeFor(gateway, {});
  const around = await trade(gateway, { code: none, code_verifier: VERIFIER });
  assert.equal(around.status, 400, 'no way around a challenge');
  assert.match(around.body.error.message, /^code_verifier does not match: the code was created without a challenge/);
  assert.equal((await trade(gateway, { code: none, code_challenge_method: null })).status, 200);
  assert.equal((await trade(gateway, { code: 'unknown' })).status, 403);
  assert.equal((await trade(gateway, {})).status, 400);
  const { id: guessed } = await codeFor(gateway, s256);
  for (let n = 0; n < 5; n++) await trade(gateway, { code: guessed, code_verifier: 'guess' });
  assert.equal((await trade(gateway, { code: guessed, code_verifier: VERIFIER })).status, 403, 'five guesses end it');
  const got = await fetch(`${gateway.api}/auth/keys`);
  assert.equal(got.status, 405);
});

test('a challenge and a verifier have 43 to 128 characters of the alphabet of RFC 7636, everywhere', async (t) => {
  const gateway = await startGateway(t);
  const hashOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
  const bad = [
    '',
    'a',
    'a'.repeat(42),
    'a'.repeat(129),
    `${'a'.repeat(42)} `,
    `${'a'.repeat(42)}+`,
    `${'a'.repeat(43)}é`,
  ];
  const { call } = controlOf(gateway);
  for (const text of bad) {
    for (const method of ['plain', 'S256', undefined]) {
      const challenge = { code_challenge: text, ...(method && { code_challenge_method: method }) };
      const { status, body } = await call('POST', '/auth/keys/code', { callback_url: CALLBACK, ...challenge });
      assert.equal(status, 400, `${method} ${text}`);
      assert.match(body.error.message, /code_challenge/);
      const query = new URLSearchParams({ callback_url: CALLBACK, ...challenge });
      assert.equal((await fetch(`${gateway.url}/auth?${query}`)).status, 400, `${method} ${text}`);
    }
    const { id: code } = await codeFor(gateway, { code_challenge: hashOf(text), code_challenge_method: 'S256' });
    assert.equal((await trade(gateway, { code, code_verifier: text })).status, 403, text);
  }
  const good = ['a'.repeat(43), 'a'.repeat(128), `-._~${'Z9'.repeat(30)}`];
  for (const verifier of good) {
    const { id: plain } = await codeFor(gateway, { code_challenge: verifier });
    assert.equal((await trade(gateway, { code: plain, code_verifier: verifier })).status, 200, verifier);
    const { id: hashed } = await codeFor(gateway, { code_challenge: hashOf(verifier), code_challenge_method: 'S256' });
    assert.equal((await trade(gateway, { code: hashed, code_verifier: verifier })).status, 200, verifier);
  }
});

test('a code ends soon, with its maker, and is stored nowhere as it is', async (t) => {
  const gateway = await startGateway(t);
  const late = await codeFor(gateway, {});
  gateway.clock.jump(600_000);
  assert.equal((await trade(gateway, { code: late.id })).status, 403);
  const { id } = await codeFor(gateway, { limit: 1 });
  const [row] = await rows(gateway, 'select auth_codes::text as text from auth_codes');
  assert.ok(!(row!['text'] as string).includes(id));
  await inDatabase(gateway, [
    `insert into users (id, name, created_at) values ('user_gone', 'Gone', now())`,
    `update auth_codes set user_id = 'user_gone'`,
  ]);
  const { status, body } = await trade(gateway, { code: id });
  assert.equal(status, 403);
  assert.match(body.error.message, /no longer a member/);
  const { call, refused } = controlOf(gateway);
  const ask = (more: Json) => call('POST', '/auth/keys/code', { callback_url: CALLBACK, ...more });
  await refused(ask({ limit: 0 }), 400, /limit/);
  await refused(ask({ key_label: ' ' }), 400, /^key_label must not be blank/);
  await refused(ask({ usage_limit_type: 'daily' }), 400, /usage_limit_type/);
  await refused(ask({ expires_at: '2001-01-01T00:00:00Z' }), 400, /expires_at/);
  await refused(ask({ workspace_id: '00000000-0000-7000-8000-000000000000' }), 400, /workspace_id/);
  await refused(ask({ code_challenge: 'short', code_challenge_method: 'S256' }), 400, /code_challenge/);
  await refused(ask({ code_challenge_method: 'S256' }), 400, /code_challenge/);
  await refused(call('POST', '/auth/keys/code', { callback_url: CALLBACK }, INFERENCE_KEY), 403, /management/);
});

test('of exchanges of one code at two processes at once exactly one gets a key', async (t) => {
  const gateway = await startGateway(t);
  const other = await startGateway(t, { target: gateway.target });
  for (let round = 0; round < 5; round++) {
    const { id: code } = await codeFor(gateway, { code_challenge: S256, code_challenge_method: 'S256' });
    const body = { code, code_verifier: VERIFIER };
    const places = [gateway, other, gateway, other];
    const answers = await Promise.all(places.map((place) => trade(place, body)));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 403, 403, 403]);
  }
});

async function rows({ target }: Gateway, sql: string): Promise<Json[]> {
  const client = await connect(target);
  try {
    return (await client.query(sql)).rows as Json[];
  } finally {
    await client.end();
  }
}

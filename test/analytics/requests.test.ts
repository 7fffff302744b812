/** GET /generations: single requests in order, by filters, in pages, and only of one's own organization. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { one: {}, two: {} } },
);
const { call } = controlOf(gateway);
let other: Json;

async function ask(provider: string, key?: string, more: Json = {}): Promise<void> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const body = { model: `test/${provider}`, messages: [{ role: 'user', content: 'write to a@b.test' }], ...more };
  await (await gateway.post('/chat/completions', body, headers)).arrayBuffer();
}

async function list(query = ''): Promise<Json> {
  const { status, body } = await call('GET', `/generations${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

before(async () => {
  gateway.upstream.script('one', [{ ...chatWhole('hi'), repeat: true }]);
  gateway.upstream.script('two', [{ ...chatFailure(500, 'broken'), repeat: true }]);
  other = (await call('POST', '/keys', { name: '<b>guarded</b>' })).body;
  const filters = [{ slug: 'email', action: 'block' }];
  const { data: guardrail } = (await call('POST', '/guardrails', { name: 'no mail', content_filter_builtins: filters }))
    .body;
  await call('POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [other.data.hash] });
  await ask('one');
  await ask('one', undefined, { session_id: 's-1' });
  await ask('two');
  await ask('one', other.key);
});

test('the newest come first, with their key, outcome, tokens and cost', async () => {
  const { data, next_cursor } = await list();
  assert.equal(next_cursor, null);
  assert.deepEqual(
    data.map(({ model, status, error, session_id }: Json) => [model, status, error?.type ?? null, session_id]),
    [
      ['test/one', 403, 'permission_denied', null],
      ['test/two', data[1].status, data[1].error.type, null],
      ['test/one', 200, null, 's-1'],
      ['test/one', 200, null, null],
    ],
  );
  assert.equal(data[0].api_key.name, '<b>guarded</b>');
  assert.ok(data[0].guardrail_marks > 0 && data[3].guardrail_marks === 0);
  assert.ok(data[3].total_cost > 0 && data[3].tokens_completion > 0);
  assert.equal(data[0].total_cost, 0);
  const full = (await call('GET', `/generation?id=${data[3].id}`)).body.data;
  assert.deepEqual([full.total_cost, full.tokens_prompt], [data[3].total_cost, data[3].tokens_prompt]);
});

test('filters find what they name, together', async () => {
  const found = async (query: string) => (await list(query)).data.length;
  const [blocked] = (await list()).data;
  assert.deepEqual(
    await Promise.all(
      [
        '?model=test/one',
        '?model=test/two',
        '?model=unknown',
        `?api_key_id=${other.data.hash}`,
        `?api_key_id=${other.data.id}`,
        '?api_key_id=unknown',
        '?outcome=guarded',
        '?outcome=failed',
        '?outcome=succeeded',
        '?outcome=cancelled',
        '?session_id=s-1',
        '?error_type=permission_denied',
        `?id=${blocked.id}`,
        '?api_type=completions',
        `?workspace_id=${blocked.workspace_id}&outcome=guarded`,
        '?provider=none',
        `?end=${encodeURIComponent(blocked.created_at)}&outcome=guarded`,
      ].map(found),
    ),
    [3, 1, 0, 1, 1, 0, 1, 2, 2, 0, 1, 1, 1, 4, 1, 0, 0],
  );
});

test('pages neither repeat nor leave out', async () => {
  const ids: string[] = [];
  let cursor: string | null = '';
  do {
    const page: Json = await list(`?limit=3${cursor && `&cursor=${cursor}`}`);
    ids.push(...page.data.map(({ id }: Json) => id));
    cursor = page.next_cursor;
  } while (cursor);
  const all = (await list()).data.map(({ id }: Json) => id);
  assert.deepEqual(ids, all);
});

test('wrong filters are refused with their names', async () => {
  for (const [query, field] of [
    ['?start=yesterday', /start/],
    ['?start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z', /end/],
    ['?limit=0', /limit/],
    ['?limit=101', /limit/],
    ['?outcome=other', /outcome/],
    ['?cursor=2', /cursor/],
    ['?start=0000-01-01T00:00:00Z', /start/],
    ['?workspace_id=x', /workspace_id/],
    ['?unknown=1', /unknown/],
    ['?=1', /^"" is not a parameter; accepted: start/],
  ] as const) {
    const { status, body } = await call('GET', `/generations${query}`);
    assert.equal(status, 400, query);
    assert.match(body.error.message, field);
  }
});

test('generations of another organization are not listed', async () => {
  await inDatabase(gateway, [`update generations set organization_id = 'org_other' where session_id = 's-1'`]);
  assert.equal((await list()).data.length, 3);
  await inDatabase(gateway, [
    `update generations set organization_id = (select id from organizations limit 1) where session_id = 's-1'`,
  ]);
  assert.equal((await gateway.get('/generations', MANAGEMENT_KEY)).status, 200);
});

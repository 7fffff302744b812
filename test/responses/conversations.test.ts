/** `/conversations`, and `conversation` in requests, with OpenAI's SDK, unmodified. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { answerOf, errorOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { clientOf, startScene } from './scene.ts';

const { gateway, openai, script } = await startScene({ yaml: { retention: { conversations_days: 90 } } });
const control = controlOf(gateway);
const DAY_MS = 86_400_000;

const textsOf = (items: Json[]): string[] => items.map((item) => item.content[0].text);
const textsIn = async (id: string): Promise<string[]> => {
  const texts: string[] = [];
  for await (const item of openai.conversations.items.list(id, { order: 'asc', limit: 2 })) {
    texts.push(...textsOf([item]));
  }
  return texts;
};
const message = (content: string) => ({ type: 'message', role: 'user', content }) as const;

test('a conversation is created, shown, changed and deleted', async () => {
  const made = await openai.conversations.create({ metadata: { topic: 'ä' }, items: [message('first')] });
  assert.match(made.id, /^conv_/);
  assert.deepEqual([made.object, made.metadata], ['conversation', { topic: 'ä' }]);
  assert.deepEqual(await openai.conversations.retrieve(made.id), made);
  const changed = await openai.conversations.update(made.id, { metadata: { topic: 'b' } });
  assert.deepEqual(changed, { ...made, metadata: { topic: 'b' } });
  assert.deepEqual(await openai.conversations.retrieve(made.id), changed);
  assert.deepEqual(await textsIn(made.id), ['first']);
  const gone = await openai.conversations.delete(made.id);
  assert.deepEqual(gone, { id: made.id, object: 'conversation.deleted', deleted: true });
  await assert.rejects(openai.conversations.retrieve(made.id), { status: 404 });
  await assert.rejects(openai.conversations.items.list(made.id), { status: 404 });
  const { body } = await control.call('GET', '/audit?action=conversation.deleted');
  assert.equal(body.data[0].resource_id, made.id);
});

test('items are added, shown, paged and deleted, and their ids are distinct', async () => {
  const { id } = await openai.conversations.create();
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"n":12345678901234567890}' } as const;
  const items = [{ ...message('a'), id: 'msg_own' }, call, { ...message('b'), id: 'msg_own' }] as Json[];
  const added: Json = await openai.conversations.items.create(id, { items });
  const ids = added.data.map((item: Json) => item.id);
  assert.equal(new Set(ids).size, 3);
  assert.equal(ids[0], 'msg_own');
  const shown: Json = await openai.conversations.items.retrieve(ids[1], { conversation_id: id });
  assert.deepEqual(shown, { ...call, id: ids[1] });
  const newest = await openai.conversations.items.list(id, { limit: 1 });
  assert.deepEqual([newest.data[0]!.id, newest.has_more], [ids[2], true]);
  const left = await openai.conversations.items.delete(ids[1], { conversation_id: id });
  assert.equal(left.id, id);
  assert.deepEqual(await textsIn(id), ['a', 'b']);
  await assert.rejects(openai.conversations.items.retrieve(ids[1], { conversation_id: id }), { status: 404 });
  await assert.rejects(openai.conversations.items.list(id, { after: 'none' }), { status: 400 });
  for (const [wrong, path] of [
    [{ type: 'message', content: 'x' }, 'items[0].role'],
    [{ type: 'message', role: 'user', content: 5 }, 'items[0].content'],
    [{ type: 'function_call_output', call_id: 'c', output: 5 }, 'items[0].output'],
    [{ type: 'function_call', call_id: 'c' }, 'items[0].name'],
    [{ type: 'item_reference', id: 'msg_own' }, 'items[0]'],
  ] as [Json, string][]) {
    await assert.rejects(openai.conversations.items.create(id, { items: [wrong] }), (error: Json) => {
      return error.status === 400 && error.message.includes(path);
    });
  }
});

for (const upstream of ['chat', 'openai'] as const) {
  for (const stream of [false, true]) {
    test(`requests continue a conversation and add their turns to it | ${upstream}, ${stream ? 'streamed' : 'whole'}`, async () => {
      const { id } = await openai.conversations.create({ items: [message('before')] });
      const sent = script(upstream, stream, { text: 'one' }, { text: 'two' });
      const create = (body: Json): Promise<Json> => {
        const request = { model: `test/${upstream}`, conversation: id, ...body };
        return stream ? openai.responses.stream(request).finalResponse() : openai.responses.create(request);
      };
      const first = await create({ input: 'hello' });
      assert.deepEqual(first.conversation, { id });
      await assert.rejects(openai.responses.retrieve(first.id), { status: 404 });
      const second = await create({ input: [message('again')], conversation: { id }, store: true });
      assert.deepEqual((await openai.responses.retrieve(second.id)).conversation, { id });
      const [, body] = sent();
      assert.equal((body.input ?? body.messages).length, 4);
      assert.equal(body.conversation, undefined);
      assert.deepEqual(await textsIn(id), ['before', 'hello', 'one', 'again', 'two']);
    });
  }
}

test('a response in the background adds its turn when it ends', async () => {
  const { id } = await openai.conversations.create();
  script('chat', false, { text: 'later' });
  await openai.responses.create({ model: 'test/chat', input: 'now', conversation: id, background: true });
  const texts = await until(async () => {
    const found = await textsIn(id);
    return found.length === 2 && found;
  }, 'the turn');
  assert.deepEqual(texts, ['now', 'later']);
});

test('a request that fails leaves its conversation as it was', async () => {
  const { id } = await openai.conversations.create();
  gateway.upstream.script('chat', [errorOf('chat', 400, 'no')]);
  await assert.rejects(openai.responses.create({ model: 'test/chat', input: 'x', conversation: id }), { status: 400 });
  for (const [more, path] of [
    [{ conversation: 'conv_none' }, 'conversation'],
    [{ conversation: id, previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ conversation: {} }, 'conversation.id'],
  ] as [Json, string][]) {
    await assert.rejects(openai.responses.create({ model: 'test/chat', input: 'x', ...more }), (error: Json) => {
      return error.status < 500 && error.message.includes(path);
    });
  }
  assert.deepEqual(await textsIn(id), []);
});

test('a conversation exists in its workspace only, encrypted, and is deleted with it or after its retention', async () => {
  const { id: workspaceId } = await control.made({ name: 'Theirs', slug: 'theirs' });
  const { token, hash } = await control.keyIn(workspaceId, 'theirs');
  const theirs = clientOf(gateway, token);
  const own = await openai.conversations.create({ items: [message('canary')], metadata: { canary: 'canary' } });
  const other = await theirs.conversations.create({ items: [message('x')] });
  await assert.rejects(theirs.conversations.retrieve(own.id), { status: 404 });
  await assert.rejects(theirs.conversations.update(own.id, { metadata: {} }), { status: 404 });
  await assert.rejects(theirs.conversations.items.list(own.id), { status: 404 });
  await assert.rejects(theirs.conversations.delete(own.id), { status: 404 });
  const continued = theirs.responses.create({ model: 'test/chat', input: 'x', conversation: own.id });
  await assert.rejects(continued, { status: 404 });
  const rows = async (table: string): Promise<Json[]> => {
    const client = await connect(gateway.target);
    const found = await client.query(`select * from ${table}`);
    await client.end();
    return found.rows;
  };
  for (const table of ['conversations', 'conversation_items']) {
    for (const row of await rows(table)) {
      for (const value of Object.values(row)) assert.doesNotMatch(String(value), /canary/);
    }
  }
  await control.call('DELETE', `/keys/${hash}`);
  assert.equal((await control.call('DELETE', `/workspaces/${workspaceId}`)).status, 200);
  const ids = async () => (await rows('conversations')).map((row) => row.id);
  assert.deepEqual([(await ids()).includes(own.id), (await ids()).includes(other.id)], [true, false]);
  gateway.clock.jump(91 * DAY_MS);
  await until(async () => (await ids()).length === 0, 'the conversations to be removed');
});

test('one turn cannot bring a conversation above its limit', async () => {
  const { id } = await openai.conversations.create();
  const fill = async (upTo: number): Promise<number> => {
    const client = await connect(gateway.target);
    await client.query(
      `insert into conversation_items (conversation_id, id, sealed)
       select $1, 'x' || n, 'x'::bytea from generate_series((select count(*) + 1 from conversation_items
         where conversation_id = $1), $2::int) n`,
      [id, upTo],
    );
    const { rows } = await client.query<{ count: number }>(
      'select count(*)::int as count from conversation_items where conversation_id = $1',
      [id],
    );
    await client.end();
    return rows[0]!.count;
  };
  const gate = 'full';
  const told = answerOf('chat', false, { text: 'late' });
  gateway.upstream.script('chat', [{ ...told, chunks: [{ gate }, ...told.chunks!] }]);
  const sent = gateway.upstream.requests('chat').length;
  const answer = openai.responses.create({ model: 'test/chat', input: 'hi', conversation: id });
  await until(async () => gateway.upstream.requests('chat').length > sent, 'the request');
  await fill(9_999);
  gateway.upstream.open(gate);
  assert.equal((await answer).output_text, 'late');
  assert.equal(await fill(0), 10_000);
  await assert.rejects(openai.responses.create({ model: 'test/chat', input: 'hi', conversation: id }), /10000 items/);
  const other = await openai.conversations.create();
  const input = Array.from({ length: 10_000 }, () => message('x'));
  await assert.rejects(openai.responses.create({ model: 'test/chat', input, conversation: other.id }), /10000 items/);
});

test('an input names items of stored responses and conversations, of its own workspace alone', async () => {
  const sent = script('chat', false, { text: 'stored' }, { text: 'next' }, { text: 'last' });
  const first = await openai.responses.create({ model: 'test/chat', input: 'one', store: true });
  const output = { type: 'item_reference', id: first.output[0]!.id! } as const;
  const { id } = await openai.conversations.create({ items: [{ ...message('earlier'), id: 'msg_named' } as never] });
  const named = { type: 'item_reference', id: 'msg_named' } as const;
  const input = [named, output, message('two')] as Json;
  const next = await openai.responses.create({ model: 'test/chat', input });
  assert.equal(next.output_text, 'next');
  assert.deepEqual(
    sent()[1].messages.map(({ role, content }: Json) => [role, content]),
    [
      ['user', 'earlier'],
      ['assistant', 'stored'],
      ['user', 'two'],
    ],
  );
  const kept = await openai.responses.create({ model: 'test/chat', input, store: true });
  assert.equal((await openai.responses.inputItems.list(kept.id)).data.length, 3);
  const workspace = await control.made({ name: 'foreign', slug: 'foreign' });
  const foreign = clientOf(gateway, (await control.keyIn(workspace.id, 'foreign')).token);
  for (const [client, reference] of [
    [foreign, output],
    [foreign, named],
    [openai, { type: 'item_reference', id: 'msg_none' }],
  ] as const) {
    const asked = client.responses.create({ model: 'test/chat', input: [message('x'), reference] as Json });
    await assert.rejects(asked, (error: Json) => error.status === 404 && /^404 input\[1\] refers/.test(error.message));
  }
  await openai.responses.delete(first.id);
  await assert.rejects(openai.responses.create({ model: 'test/chat', input: [output] }), { status: 404 });
  await openai.conversations.delete(id);
  await assert.rejects(openai.responses.create({ model: 'test/chat', input: [named] }), { status: 404 });
  const without = openai.responses.create({ model: 'test/chat', input: [{ type: 'item_reference' } as never] });
  await assert.rejects(without, { status: 400 });
});

test('items that are named often or are large make no request that is too large', async () => {
  const large = (id: string) => ({ ...message('x'.repeat(9_000_000)), id }) as never;
  const { id } = await openai.conversations.create({ items: [large('msg_large')] });
  const ids = ['msg_large', 'msg_second', 'msg_third', 'msg_fourth'];
  for (const named of ids.slice(1)) await openai.conversations.items.create(id, { items: [large(named)] });
  for (const names of [Array.from({ length: 1_000 }, () => 'msg_large'), ids]) {
    const input = names.map((name) => ({ type: 'item_reference', id: name }));
    const asked = openai.responses.create({ model: 'test/chat', input: input as Json });
    await assert.rejects(asked, (error: Json) => error.status === 413 && /input makes the request/.test(error.message));
  }
});

test('a response in a conversation can be continued with what the conversation had then', async () => {
  for (const background of [false, true]) {
    const sent = script('chat', false, { text: 'a' }, { text: 'b' });
    const conversation = await openai.conversations.create({ items: [message('before')] });
    const request = { model: 'test/chat', input: 'one', conversation: conversation.id, store: true, background };
    const first = await openai.responses.create(request);
    if (background) await until(async () => (await textsIn(conversation.id)).length > 1, 'the turn');
    assert.deepEqual(await textsIn(conversation.id), ['before', 'one', 'a']);
    const { data } = await openai.responses.inputItems.list(first.id, { order: 'asc' });
    assert.deepEqual(
      data.map((item: Json) => item.content[0].text),
      ['before', 'one'],
    );
    await openai.conversations.delete(conversation.id);
    await openai.responses.create({ model: 'test/chat', input: 'two', previous_response_id: first.id });
    assert.deepEqual(
      sent()[1].messages.map(({ content }: Json) => content),
      ['before', 'one', 'a', 'two'],
    );
  }
});

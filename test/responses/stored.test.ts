/** `store`, `previous_response_id` and `/responses/{id}` with OpenAI's SDK, unmodified, in front of upstreams of three formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Response } from 'openai/resources/responses/responses';
import type { Json } from '../../src/testing/gateway/sdk.ts';
import { startScene, UPSTREAMS } from './scene.ts';

const { openai, script } = await startScene();

/** The texts that the upstream was sent, whatever its format. */
const textsOf = (body: Json): string[] => {
  const found: string[] = [];
  const read = (value: Json): void => {
    if (Array.isArray(value)) for (const each of value) read(each);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, member] of Object.entries(value)) {
        if ((key === 'text' || key === 'content') && typeof member === 'string') found.push(member);
        else read(member);
      }
    }
  };
  const said = body.input ?? body.messages;
  if (typeof said === 'string') return [said];
  read(said);
  return found;
};

for (const upstream of UPSTREAMS) {
  const model = `test/${upstream}`;
  for (const stream of [false, true]) {
    const name = `${upstream} upstream, ${stream ? 'streamed' : 'whole'}`;
    const create = async (body: Json): Promise<Response> => {
      if (!stream) return openai.responses.create({ model, ...body });
      return openai.responses.stream({ model, ...body }).finalResponse();
    };

    test(`a stored response is shown as its client got it, and continued with its whole history | ${name}`, async () => {
      const sent = script(upstream, stream, { text: 'Bonjour' }, { text: 'Encore' }, { text: 'Fin' });
      const first = await create({ input: 'one', instructions: 'Be brief.', store: true, metadata: { team: 'ä' } });
      assert.equal((first as Json).store, true);
      const second = await create({
        input: [{ role: 'user', content: 'two' }],
        store: true,
        previous_response_id: first.id,
      });
      assert.equal(second.previous_response_id, first.id);
      const third = await create({ input: 'three', previous_response_id: second.id });
      assert.equal(third.previous_response_id, second.id);
      assert.ok(!(third as Json).store);
      const bodies = sent();
      const own = (body: Json) => textsOf(body).filter((text) => text !== 'Be brief.');
      assert.deepEqual(bodies.map(own), [
        ['one'],
        ['one', 'Bonjour', 'two'],
        ['one', 'Bonjour', 'two', 'Encore', 'three'],
      ]);
      // Instructions belong to one request.
      assert.doesNotMatch(JSON.stringify(bodies[1]), /Be brief/);
      for (const body of bodies) {
        assert.equal(body.previous_response_id, undefined);
        if (upstream === 'openai') assert.equal(body.store, false);
      }

      const shown = await openai.responses.retrieve(first.id);
      const { output_text: _, ...told } = first as Json;
      const { output_text: __, ...kept } = shown as Json;
      if (!stream) assert.deepEqual(kept, told);
      assert.deepEqual([shown.status, shown.output_text, shown.metadata], ['completed', 'Bonjour', { team: 'ä' }]);
      await assert.rejects(openai.responses.retrieve(third.id), { status: 404 });

      const items = await openai.responses.inputItems.list(second.id, { order: 'asc' });
      const texts = items.data.map((item) => textsOf({ input: [item] })[0]);
      assert.deepEqual(texts, ['one', 'Bonjour', 'two']);
      const ids = items.data.map(({ id }) => id);
      const paged: (string | undefined)[] = [];
      for await (const item of openai.responses.inputItems.list(second.id, { limit: 1 })) paged.push(item.id);
      assert.deepEqual(paged, ids.toReversed());

      await openai.responses.delete(first.id);
      await assert.rejects(openai.responses.retrieve(first.id), { status: 404 });
      await assert.rejects(create({ input: 'four', previous_response_id: second.id }), (error: Json) => {
        return error.status === 404 && /previous_response_id: an earlier response .* was deleted/.test(error.message);
      });
    });
  }
}

test('a request that continues something needs no input of its own', async () => {
  const sent = script('chat', false, { text: 'a' }, { text: 'b' }, { text: 'c' });
  const first = await openai.responses.create({ model: 'test/chat', input: 'one', store: true });
  await openai.responses.create({ model: 'test/chat', previous_response_id: first.id });
  const conversation = await openai.conversations.create({ items: [{ type: 'message', role: 'user', content: 'hi' }] });
  await openai.responses.create({ model: 'test/chat', conversation: conversation.id, input: [] });
  assert.deepEqual(sent().map(textsOf), [['one'], ['one', 'a'], ['hi']]);
  const empty = await openai.conversations.create();
  for (const [more, path] of [
    [{ conversation: empty.id }, 'input'],
    [{}, 'input'],
    [{ conversation: 'conv_none' }, 'conversation'],
  ] as const) {
    await assert.rejects(openai.responses.create({ model: 'test/chat', ...more }), { message: new RegExp(path) });
  }
});

test('input items that a client sent twice are listed once each, whatever the size of a page', async () => {
  script('chat', false, { text: 'a' }, { text: 'b' });
  const item = { role: 'user', content: 'hi', id: 'msg_own' } as Json;
  const first = await openai.responses.create({ model: 'test/chat', input: [item, item], store: true });
  const next = { model: 'test/chat', input: [item], previous_response_id: first.id, store: true };
  const { id } = (await openai.responses.create(next as Json)) as Response;
  const ids: Json[] = [];
  for await (const { id: each } of openai.responses.inputItems.list(id, { order: 'asc', limit: 1 })) {
    ids.push(each);
    assert.ok(ids.length <= 4);
  }
  assert.equal(new Set(ids).size, 4);
  assert.equal(ids[0], 'msg_own');
});

test('every parameter of the openai SDK is known, and others are refused by name', async () => {
  script('chat', true, { text: 'a' });
  const { responses, conversations } = openai;
  const stream = await responses.create({ model: 'test/chat', input: 'one', background: true, stream: true });
  let id = '';
  for await (const event of stream) if (event.type === 'response.created') id = event.response.id;
  const include = ['reasoning.encrypted_content', 'message.output_text.logprobs'] as const;
  const shown = await responses.retrieve(id, { include: [...include], include_obfuscation: false });
  assert.equal(shown.id, id);
  const items = { include: [...include], limit: 5, order: 'asc' } as const;
  assert.equal((await responses.inputItems.list(id, { ...items, include: [...include] })).data.length, 1);
  const conversation = await conversations.create();
  const added = await conversations.items.create(conversation.id, {
    items: [{ type: 'message', role: 'user', content: 'hi' }],
    include: [...include],
  });
  await conversations.items.list(conversation.id, { ...items, include: [...include] });
  const one = { conversation_id: conversation.id, include: [...include] };
  await conversations.items.retrieve(added.data[0]!.id!, one);
  for (const path of [`/responses/${id}`, `/responses/${id}/input_items`, `/conversations/${conversation.id}`]) {
    const { status, body } = await openai.get(path, { query: { frob: 1 } }).then(
      () => ({ status: 200, body: '' }),
      (error: Json) => ({ status: error.status, body: error.message }),
    );
    assert.equal(status, 400, path);
    assert.match(body, /frob is not a parameter; accepted: /);
  }
});

/** Vector stores as the SDK of OpenAI uses them, and as models search them: by keywords, and by vectors of a configured model. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as jsonOf } from 'node:stream/consumers';
import { after, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { CLIENT_FORMATS, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { docxOf } from '../../src/testing/documents/docx.ts';
import { pdfOf } from '../../src/testing/documents/pdf.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { termsOf } from '../../src/vector-stores/terms.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

/** A service of vectors: each word counts in one of 64 dimensions; "feline" is the same as "cat". */
let failsWith: number | undefined;
let embedded = 0;
const vectors = createServer(async (request, response) => {
  const { input } = (await jsonOf(request)) as Json;
  embedded += 1;
  const send = (status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (failsWith !== undefined) return void send(failsWith, { error: { message: 'no vectors' } });
  const data = [input].flat().map((text: string, index: number) => {
    const embedding = Array<number>(64).fill(0);
    for (const word of termsOf(text)) embedding[hashOf(word === 'feline' ? 'cat' : word)]! += 1;
    return { object: 'embedding', index, embedding };
  });
  send(200, { object: 'list', data, model: 'v', usage: { prompt_tokens: 10, total_tokens: 10 } });
});
await new Promise<void>((done) => vectors.listen(0, '127.0.0.1', done));
const hashOf = (word: string) => [...word].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) % 61, 7);

const closing = { after: (close: () => void) => after(close as () => Promise<void>) } as Json;
const providers = {
  chat: { kind: 'chat' },
  vectors: {
    kind: 'openai',
    base_url: `http://127.0.0.1:${(vectors.address() as AddressInfo).port}`,
    model: { output_modalities: ['embeddings'], pricing: { prompt: '0.001', completion: '0' } },
  },
};
const plain = await startGateway(closing, { providers, yaml: { hosts: { europe: ['eu.test'] } } });
const gateway = await startGateway(closing, {
  ...{ providers, target: plain.target, dataDir: plain.dataDir },
  yaml: { vector_stores: { embedding_model: 'test/vectors' } },
});
after(() => vectors.close());
const sdkOf = ({ api }: Gateway, apiKey = INFERENCE_KEY) => new OpenAI({ apiKey, baseURL: api, maxRetries: 0 });
const [openai, plainOpenai] = [sdkOf(gateway), sdkOf(plain)];

async function upload(name: string, content: string | Buffer, client = openai): Promise<string> {
  return (await client.files.create({ file: await toFile(Buffer.from(content), name), purpose: 'assistants' })).id;
}

async function ready(client: OpenAI, storeId: string): Promise<OpenAI.VectorStore> {
  let store!: OpenAI.VectorStore;
  await until(async () => {
    store = await client.vectorStores.retrieve(storeId);
    return store.status === 'completed';
  }, 'the store has added its files');
  return store;
}

const CATS = 'The cat sleeps on the mat.';
const REFUNDS = 'Refunds are paid within 14 days. Größe: 東京都に住んでいます。';

test('files are added and found by keywords, and go with their file', async () => {
  const ids = [
    await upload('cats.md', CATS, plainOpenai),
    await upload('refunds.txt', REFUNDS, plainOpenai),
    await upload('paper.pdf', pdfOf('Photosynthesis feeds plants'), plainOpenai),
    await upload('letter.docx', docxOf(['Dear Sir', 'Umbrellas are sold out']), plainOpenai),
  ];
  const made = await plainOpenai.vectorStores.create({ name: 'facts', file_ids: ids, metadata: { team: 'a' } });
  assert.match(made.id, /^svc_vs_[0-9a-f]{32}$/);
  assert.deepEqual([made.status, made.file_counts.total, made.metadata], ['in_progress', 4, { team: 'a' }]);
  const store = await ready(plainOpenai, made.id);
  assert.equal(store.file_counts.completed, 4);
  assert.ok(store.usage_bytes > 0);
  const search = async (query: string) => (await plainOpenai.vectorStores.search(made.id, { query })).data;
  for (const [query, name] of [
    ['When is a refund paid?', 'refunds.txt'],
    ['GROSSE', undefined],
    ['große', 'refunds.txt'],
    ['東京', 'refunds.txt'],
    ['photosynthesis', 'paper.pdf'],
    ['umbrella', 'letter.docx'],
  ] as const) {
    const [best] = await search(query);
    assert.equal(best?.filename, name, query);
    assert.ok(best === undefined || (best.score > 0 && best.score <= 1));
  }
  const [found] = await search('refund');
  assert.deepEqual(found!.content, [{ type: 'text', text: REFUNDS }]);
  const strict = { query: 'refund dog', ranking_options: { score_threshold: 0.9 } };
  assert.deepEqual((await plainOpenai.vectorStores.search(made.id, strict)).data, []);
  await plainOpenai.files.delete(ids[1]!);
  assert.deepEqual(await search('refund'), []);
  assert.equal((await plainOpenai.vectorStores.retrieve(made.id)).file_counts.total, 3);
});

test('with an embedding model, files are found by meaning; its calls are charged to the key that adds or searches', async () => {
  const ids = [await upload('cats.md', CATS), await upload('refunds.txt', REFUNDS)];
  const made = await openai.vectorStores.create({ file_ids: ids });
  await ready(openai, made.id);
  const before = embedded;
  const { data } = await openai.vectorStores.search(made.id, { query: 'feline' });
  assert.equal(data[0]!.filename, 'cats.md');
  assert.equal(embedded, before + 1);
  const { data: texts } = await openai.vectorStores.search(made.id, {
    query: 'feline refund',
    ranking_options: { hybrid_search: { embedding_weight: 0, text_weight: 1 } } as Json,
  });
  assert.deepEqual(texts.map(({ filename }) => filename).at(0), 'refunds.txt');
});

interface Asked {
  format?: (typeof CLIENT_FORMATS)[number];
  stream?: boolean;
  history?: readonly Json[];
  more?: Json;
  told?: readonly Json[];
  tool?: Json;
}

/** A model that searches for "feline" and cites what it reads first. */
async function ask(
  storeId: string,
  { format = 'responses', stream = false, history = [], more = {}, ...given }: Asked,
) {
  const told = given.told ?? [
    { calls: [{ id: 'call_1', name: 'file_search', arguments: '{"queries":["feline"]}' }] },
    { text: 'It sleeps.' },
  ];
  gateway.upstream.script(
    'chat',
    told.map((each) => answerOf('chat', stream, each)),
  );
  const parameters = { vector_store_ids: [storeId] };
  const turns = [{ role: 'user', content: 'What does the feline do?' }, ...history];
  const reply = await gateway.post(PATH_OF[format], {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: [
      given.tool ??
        (format === 'responses' ? { type: 'file_search', ...parameters } : { type: 'svc:file_search', parameters }),
    ],
    ...more,
  });
  return {
    status: reply.status,
    text: await reply.text(),
    sent: gateway.upstream.requests('chat').map(({ json }) => json as Json),
  };
}

const cats = await openai.vectorStores.create({
  file_ids: [await upload('cats.md', CATS), await upload('refunds.md', REFUNDS)],
});

for (const format of CLIENT_FORMATS) {
  for (const stream of [false, true]) {
    test(`a model searches, and its history is accepted back | ${format} ${stream ? 'streamed' : 'whole'}`, async () => {
      await ready(openai, cats.id);
      const first = await ask(cats.id, { format, stream });
      assert.equal(first.status, 200, first.text);
      const { content } = first.sent.at(-1).messages.at(-1);
      assert.match(content, /^【[0-9a-f]{8}†cats\.md】\nThe cat sleeps on the mat\./);
      const { history } = wholeAnswer(format, stream, first.text);
      const again = await ask(cats.id, { format, stream, history, told: [{ text: 'ok' }] });
      assert.equal(again.status, 200, again.text);
      const [, called, result] = again.sent.at(-1).messages;
      assert.equal(called.tool_calls[0].function.name, 'file_search');
      assert.equal(result.content, content);
    });
  }
}

test('the SDK gets the items, events and citations of file_search', async () => {
  const found = await ask(cats.id, {});
  const label = /【[0-9a-f]{8}†cats\.md】/.exec(found.sent.at(-1).messages.at(-1).content)![0];
  const told = [
    { calls: [{ id: 'call_1', name: 'file_search', arguments: '{"queries":["feline"]}' }] },
    { text: `It sleeps.${label}` },
  ];
  const tools = [{ type: 'file_search' as const, vector_store_ids: [cats.id], max_num_results: 1 }];
  const request = { model: 'test/chat', input: 'What?', tools, include: ['file_search_call.results' as const] };
  gateway.upstream.script(
    'chat',
    told.map((each) => answerOf('chat', false, each)),
  );
  const whole = await openai.responses.create(request);
  gateway.upstream.script(
    'chat',
    told.map((each) => answerOf('chat', true, each)),
  );
  const events: string[] = [];
  const stream = openai.responses.stream(request);
  for await (const { type } of stream) events.push(type);
  const streamed = await stream.finalResponse();
  for (const { output } of [whole, streamed]) {
    const [search, message] = output as Json[];
    assert.deepEqual([search.type, search.status, search.queries], ['file_search_call', 'completed', ['feline']]);
    const [{ filename, text, score, ...result }] = search.results;
    assert.deepEqual([filename, text, search.results.length], ['cats.md', CATS, 1]);
    assert.ok(score > 0.2 && result.file_id.startsWith('svc_file_'));
    const [annotation] = message.content[0].annotations;
    assert.deepEqual(annotation, { type: 'file_citation', index: 10, file_id: result.file_id, filename });
  }
  const shown = ['in_progress', 'searching', 'completed'].map((step) => `response.file_search_call.${step}`);
  assert.deepEqual(
    events.filter((type) => type.includes('file_search')),
    shown,
  );
  assert.ok(events.includes('response.output_text.annotation.added'));
});

test('without include, an item has no texts of results', async () => {
  const { text } = await ask(cats.id, {});
  const [item] = JSON.parse(text).output;
  assert.deepEqual([item.results, item.queries], [null, ['feline']]);
});

test('settings are checked, and stores of other workspaces do not exist', async () => {
  const control = controlOf(gateway);
  const { id: workspaceId } = await control.made({ name: 'elsewhere', slug: 'elsewhere' });
  const other = sdkOf(gateway, (await control.keyIn(workspaceId, 'theirs')).token);
  await assert.rejects(other.vectorStores.retrieve(cats.id), { status: 404 });
  await assert.rejects(other.vectorStores.search(cats.id, { query: 'cat' }), { status: 404 });
  const theirs = await other.vectorStores.create({});
  const before = gateway.upstream.requests('chat').length;
  const absent = await ask(theirs.id, {});
  assert.equal(absent.status, 404);
  assert.match(
    JSON.parse(absent.text).error.message,
    /^tools\[0\]\.vector_store_ids\[0\]: the workspace has no vector/,
  );
  assert.equal(absent.sent.length, before);
  const refused = async (tool: Json) => {
    const { status, text } = await ask(cats.id, {
      tool: { type: 'file_search', vector_store_ids: [cats.id], ...tool },
    });
    return [status, JSON.parse(text).error.message];
  };
  for (const [tool, path] of [
    [{ vector_store_ids: [cats.id, 'vs_of_openai'] }, 'tools[0].vector_store_ids[1]'],
    [{ max_num_results: 51 }, 'tools[0].max_num_results'],
    [{ ranking_options: { score_threshold: 2 } }, 'tools[0].ranking_options.score_threshold'],
    [{ filters: { type: 'eq', key: 'a' } }, 'tools[0].filters.value'],
    [
      { filters: { type: 'and', filters: [{ type: 'gt', key: 'a', value: 'x' }] } },
      'tools[0].filters.filters[0].value',
    ],
  ] as const) {
    const [status, message] = await refused(tool);
    assert.equal(status, 400);
    assert.ok(message.includes(path), message);
  }
});

test('a store is listed, changed and deleted, its files stay, and the audit log has each change', async () => {
  const [one, two, three] = await Promise.all(
    ['one', 'two', 'three'].map((name) => plainOpenai.vectorStores.create({ name })),
  );
  const names: string[] = [];
  for await (const { name } of plainOpenai.vectorStores.list({ limit: 2 })) names.push(name);
  assert.deepEqual(new Set(names.slice(0, 3)), new Set(['one', 'two', 'three']));
  const changed = await plainOpenai.vectorStores.update(one!.id, {
    ...{ name: 'first', metadata: { a: 'b' }, expires_after: { anchor: 'last_active_at', days: 1 } },
  });
  assert.deepEqual([changed.name, changed.metadata, changed.expires_after?.days], ['first', { a: 'b' }, 1]);
  const fileId = await upload('kept.txt', 'kept', plainOpenai);
  await plainOpenai.vectorStores.files.create(two!.id, { file_id: fileId });
  assert.deepEqual(await plainOpenai.vectorStores.delete(two!.id), {
    ...{ id: two!.id, object: 'vector_store.deleted', deleted: true },
  });
  await assert.rejects(plainOpenai.vectorStores.retrieve(two!.id), { status: 404 });
  assert.equal((await plainOpenai.files.retrieve(fileId)).id, fileId);
  plain.clock.jump(25 * 60 * 60 * 1000);
  assert.equal((await plainOpenai.vectorStores.retrieve(one!.id)).status, 'expired');
  await assert.rejects(plainOpenai.vectorStores.search(one!.id, { query: 'x' }), { status: 400 });
  await assert.rejects(plainOpenai.vectorStores.files.create(one!.id, { file_id: fileId }), { status: 400 });
  void three;
  const log = (await controlOf(plain).call('GET', '/audit?limit=100')).body.data as Json[];
  const actions = new Set(log.map(({ action }) => action));
  for (const action of ['created', 'updated', 'deleted', 'file_added']) {
    assert.ok(actions.has(`vector_store.${action}`), action);
  }
});

test('files are added in batches, with attributes that filters read, and read as chunks', async () => {
  const store = await plainOpenai.vectorStores.create({});
  const long = Array.from({ length: 300 }, (_, index) => `line ${index} about otters`).join('\n');
  const [a, b, c] = await Promise.all(
    [`${long}`, 'otters swim', 'x'].map((text, index) => upload(`batch-${index}.txt`, text, plainOpenai)),
  );
  const png = await upload(
    'image.png',
    Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=',
      'base64',
    ),
    plainOpenai,
  );
  const batch = await plainOpenai.vectorStores.fileBatches.create(store.id, {
    files: [
      {
        file_id: a!,
        attributes: { year: 2020 },
        chunking_strategy: { type: 'static', static: { max_chunk_size_tokens: 100, chunk_overlap_tokens: 0 } },
      },
      { file_id: b!, attributes: { year: 2024, kind: 'note' } },
      { file_id: png },
    ],
  });
  await until(
    async () =>
      (await plainOpenai.vectorStores.fileBatches.retrieve(batch.id, { vector_store_id: store.id })).status ===
      'completed',
    'the batch has ended',
  );
  const listed = await plainOpenai.vectorStores.fileBatches.listFiles(batch.id, {
    vector_store_id: store.id,
    limit: 2,
    order: 'asc',
  });
  const files: OpenAI.VectorStores.VectorStoreFile[] = [];
  for await (const file of listed) files.push(file);
  assert.deepEqual(
    files.map(({ id, status }) => [id, status]),
    [
      [a, 'completed'],
      [b, 'completed'],
      [png, 'failed'],
    ],
  );
  assert.equal(files[2]!.last_error?.code, 'unsupported_file');
  const chunks: string[] = [];
  for await (const { text } of plainOpenai.vectorStores.files.content(a!, { vector_store_id: store.id }))
    chunks.push(text!);
  assert.equal(chunks.join(''), long);
  assert.ok(chunks.length > 10 && chunks.every((chunk) => Buffer.byteLength(chunk) <= 400));
  const found = async (filters: Json) => {
    const { data } = await plainOpenai.vectorStores.search(store.id, { query: 'otters', filters, max_num_results: 50 });
    return [...new Set(data.map(({ filename }) => filename))];
  };
  assert.deepEqual(await found({ type: 'gte', key: 'year', value: 2024 }), ['batch-1.txt']);
  assert.deepEqual(await found({ type: 'and', filters: [{ type: 'ne', key: 'kind', value: 'note' }] }), [
    'batch-0.txt',
  ]);
  assert.deepEqual(await found({ type: 'in', key: 'kind', value: ['note', 'x'] }), ['batch-1.txt']);
  await plainOpenai.vectorStores.files.update(b!, { vector_store_id: store.id, attributes: { kind: 'other' } });
  assert.deepEqual(await found({ type: 'eq', key: 'kind', value: 'other' }), ['batch-1.txt']);
  await plainOpenai.vectorStores.files.delete(b!, { vector_store_id: store.id });
  assert.deepEqual(await found({ type: 'eq', key: 'kind', value: 'other' }), []);
  const problem = { file_ids: [c!, 'svc_file_none'] };
  await assert.rejects(plainOpenai.vectorStores.fileBatches.create(store.id, problem), /file_ids\[1\]/);
  assert.equal((await plainOpenai.vectorStores.retrieve(store.id)).file_counts.total, 2, 'nothing of it was added');
});

test('a budget that does not cover the vectors fails the file and the search, and nothing is sent', async () => {
  const { token } = await controlOf(gateway).keyIn(undefined, 'poor', { limit: 0.000001 });
  const poor = sdkOf(gateway, token);
  const before = embedded;
  await assert.rejects(poor.vectorStores.search(cats.id, { query: 'cat' }), { status: 402 });
  const store = await poor.vectorStores.create({ file_ids: [await upload('poor.txt', 'x', poor)] });
  await ready(poor, store.id);
  const [file] = (await poor.vectorStores.files.list(store.id)).data;
  assert.deepEqual([file!.status, file!.last_error?.code], ['failed', 'server_error']);
  assert.match(file!.last_error!.message, /its vectors could not be made/);
  assert.equal(embedded, before);
});

test('while the service of vectors fails, a file waits, and a cancelled batch adds nothing more', async () => {
  failsWith = 500;
  const before = embedded;
  const store = await openai.vectorStores.create({});
  const batch = await openai.vectorStores.fileBatches.create(store.id, {
    file_ids: [await upload('wait.txt', 'wait')],
  });
  await until(() => embedded > before, 'vectors were requested');
  const ids = { vector_store_id: store.id };
  assert.equal((await openai.vectorStores.fileBatches.retrieve(batch.id, ids)).status, 'in_progress');
  const cancelled = await openai.vectorStores.fileBatches.cancel(batch.id, ids);
  assert.deepEqual([cancelled.status, cancelled.file_counts.cancelled], ['cancelled', 1]);
  failsWith = undefined;
  assert.deepEqual((await openai.vectorStores.search(store.id, { query: 'wait' })).data, []);
});

test('a chunking strategy that no file could have is refused with its path, files or not', async () => {
  const chunking_strategy = {
    type: 'static' as const,
    static: { max_chunk_size_tokens: 100, chunk_overlap_tokens: 80 },
  };
  const file_id = await upload('short.md', Buffer.from('short'), plainOpenai);
  const store = await plainOpenai.vectorStores.create({});
  for (const [ask, path] of [
    [() => plainOpenai.vectorStores.create({ chunking_strategy }), 'chunking_strategy'],
    [() => plainOpenai.vectorStores.create({ chunking_strategy, file_ids: [file_id] }), 'chunking_strategy'],
    [() => plainOpenai.vectorStores.files.create(store.id, { file_id, chunking_strategy }), 'chunking_strategy'],
    [
      () =>
        plainOpenai.vectorStores.fileBatches.create(store.id, { files: [{ file_id }, { file_id, chunking_strategy }] }),
      'files[1].chunking_strategy',
    ],
  ] as const) {
    await assert.rejects(ask, (error: Error) => {
      assert.ok(error.message.startsWith(`400 ${path}.static.chunk_overlap_tokens must`), error.message);
      return true;
    });
  }
});

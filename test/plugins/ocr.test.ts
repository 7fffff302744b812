/** The engine `mistral-ocr` of the file parser through a whole gateway, with an OCR service of ours: what it costs, and who pays. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pdfOf } from '../../src/testing/documents/pdf.ts';
import { MANAGEMENT_KEY, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const service = await startUpstream();
after(() => service.close());
const url = service.script('ocr', []);
const { gateway, control, guarded } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: { kind: 'chat', model: { input_modalities: ['text'] } } },
    yaml: { ocr: { url, api_key: 'key-of-ocr', price_per_page: 0.01 } },
  },
);

const PDF = pdfOf('scan', 'scan');
/** At 3 and 15 USD for a million tokens. */
const TURN_USD = 0.000105;
const PAGES = wholeOf({
  pages: [
    { index: 0, markdown: '# Invoice' },
    { index: 1, markdown: 'Total: 12' },
  ],
});
const PLUGINS = [{ id: 'file-parser', pdf: { engine: 'mistral-ocr' } }];

function bodyOf(more: Json = {}): Json {
  const file_data = `data:application/pdf;base64,${PDF.toString('base64')}`;
  const content = [
    { type: 'text', text: 'What is due?' },
    { type: 'file', file: { filename: 'scan.pdf', file_data } },
  ];
  return { model: 'test/chat', messages: [{ role: 'user', content }], max_tokens: 50, plugins: PLUGINS, ...more };
}

async function ask(recognized: Answer, { token, ...more }: Json = {}) {
  const key = token === undefined ? await control.keyIn(undefined, 'ocr') : { token, hash: undefined };
  service.script('ocr', recognized);
  gateway.upstream.script('chat', answerOf('chat', false, { text: 'Twelve.', usage: { input: 10, output: 5 } }));
  const before = { ocr: service.requests('ocr').length, chat: gateway.upstream.requests('chat').length };
  const reply = await gateway.post('/chat/completions', bodyOf(more), { authorization: `Bearer ${key.token}` });
  const text = await reply.text();
  const sent = gateway.upstream.requests('chat').slice(before.chat);
  const asked = service.requests('ocr').slice(before.ocr);
  return { status: reply.status, text, hash: key.hash!, sent, asked };
}

async function rowOf(hash: string): Promise<Json> {
  for (;;) {
    const { data } = (await (await gateway.get(`/generations?api_key_id=${hash}`, MANAGEMENT_KEY)).json()) as Json;
    if (data.length > 0) {
      assert.equal(data.length, 1);
      return data[0];
    }
  }
}

const near = (one: number, other: number) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

test('pages are recognized for the model and charged once; the annotation saves the next time', async () => {
  const { status, text, hash, sent, asked } = await ask(PAGES);
  assert.equal(status, 200, text);
  const { headers, json } = asked[0]! as Json;
  assert.equal(headers.authorization, 'Bearer key-of-ocr');
  assert.equal(json.model, 'mistral-ocr-latest');
  assert.equal(json.document.document_url, `data:application/pdf;base64,${PDF.toString('base64')}`);
  assert.match(JSON.stringify(sent[0]!.json), /\[Page 1\]\\n# Invoice\\n\\n\[Page 2\]\\nTotal: 12/);
  const { choices, usage } = JSON.parse(text);
  near(usage.cost, 0.02 + TURN_USD);
  near(usage.cost_details.server_tool_cost, 0.02);
  near((await rowOf(hash)).total_cost, 0.02 + TURN_USD);

  const { messages } = bodyOf();
  const next = await ask(PAGES, { messages: [...messages, choices[0].message, { role: 'user', content: 'Sure?' }] });
  assert.deepEqual([next.status, next.asked.length], [200, 0], next.text);
  near(JSON.parse(next.text).usage.cost, TURN_USD);
  assert.match(JSON.stringify(next.sent[0]!.json), /# Invoice/);
});

test('a budget that does not cover the pages refuses the file before it is sent', async () => {
  const { token } = await control.keyIn(undefined, 'poor', { limit: 0.015 });
  const { status, text, asked, sent } = await ask(PAGES, { token });
  assert.deepEqual([status, asked.length, sent.length], [402, 0, 0], text);
});

test('a service that refuses costs nothing, one that answers nonsense does; neither reaches a model', async () => {
  for (const [answer, cost] of [
    [{ status: 401 }, undefined],
    [wholeOf({ pages: [] }), 0.02],
    [wholeOf('no'), 0.02],
  ] as const) {
    const { status, text, hash, sent } = await ask(answer);
    assert.deepEqual([status, sent.length], [502, 0], text);
    assert.ok(!text.includes('key-of-ocr'));
    if (cost === undefined) continue;
    const row = await rowOf(hash);
    near(row.total_cost, cost);
  }
});

test('pages are charged to a request that a filter blocks for them, in its one row', async () => {
  const { token, hash } = await guarded({ content_filters: [{ pattern: 'Invoice', action: 'block' }] });
  const { status, text, sent } = await ask(PAGES, { token });
  assert.deepEqual([status, sent.length], [403, 0], text);
  const row = await rowOf(hash);
  near(row.total_cost, 0.02);
});

test('counting tokens asks no service', async () => {
  const before = service.requests('ocr').length;
  const source = { type: 'base64', media_type: 'application/pdf', data: PDF.toString('base64') };
  const messages = [{ role: 'user', content: [{ type: 'document', source }] }];
  const { token } = await control.keyIn(undefined, 'counts');
  const reply = await gateway.post(
    '/messages/count_tokens',
    { model: 'test/chat', messages, plugins: PLUGINS },
    { authorization: `Bearer ${token}` },
  );
  assert.equal(reply.status, 200, await reply.text());
  assert.equal(service.requests('ocr').length, before);
});

test('without a section ocr, the credential of a Mistral provider is used, within the rules about providers', async (t) => {
  const other = await startGateway(t, {
    providers: { chat: { model: { input_modalities: ['text'] } }, paid: { kind: 'mistral', base_url: url } },
  });
  service.script('ocr', PAGES);
  other.upstream.script('chat', answerOf('chat', false, { text: 'Twelve.', usage: { input: 10, output: 5 } }));
  const before = service.requests('ocr').length;
  for (const provider of [{ ignore: ['paid'] }, { only: ['chat'] }, { zdr: true }]) {
    const refused = await other.post('/chat/completions', bodyOf({ provider }));
    assert.equal(refused.status, 403);
    assert.match(await refused.text(), /plugins\[0\]\.pdf\.engine needs the provider paid/);
  }
  assert.equal(service.requests('ocr').length, before);
  const reply = await other.post('/chat/completions', bodyOf());
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.equal((service.requests('ocr').at(-1) as Json).headers.authorization, `Bearer ${UPSTREAM_KEY}`);
  near(JSON.parse(text).usage.cost, 0.004 + TURN_USD);
});

/** Plugins are governed: guardrails and workspace rules hold for what they add and choose, in every format. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BODY_FORMATS } from '../../src/testing/clients/served-answer.ts';
import { pdfOf } from '../../src/testing/documents/pdf.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';
import type { Json } from '../workspaces/control.ts';

const ROUTES = { chat: '/chat/completions', messages: '/messages', responses: '/responses' };
let scene: Awaited<ReturnType<typeof startGuarded>>;
const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

before(async () => {
  scene = await startGuarded(
    { after: (close: unknown) => void closing.push(close as () => unknown) },
    { providers: { text: { kind: 'chat' }, other: { kind: 'chat' } } },
  );
  for (const name of ['text', 'other']) {
    scene.gateway.upstream.script(name, { ...answerOf('chat', false, { text: 'ok' }), repeat: true });
  }
});

function bodyOf(served: keyof typeof ROUTES, more: Json): Json {
  const { part, ...others } = more;
  const content = [{ type: served === 'responses' ? 'input_text' : 'text', text: 'hi' }, ...(part ? [part] : [])];
  const history = [{ role: 'user', content }];
  return {
    model: 'test/text',
    ...(served === 'responses' ? { input: history } : { messages: history, max_tokens: 9 }),
    ...others,
  };
}

test('a filter sees the text of a parsed file, in every format', async () => {
  const data = pdfOf('this is forbidden-1234 here').toString('base64');
  const parts = {
    chat: { type: 'file', file: { file_data: `data:application/pdf;base64,${data}` } },
    messages: { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } },
    responses: { type: 'input_file', file_data: `data:application/pdf;base64,${data}` },
  };
  const plugins = [{ id: 'file-parser', pdf: { engine: 'pdf-text' } }];
  const blocked = await scene.guarded({ content_filters: [{ pattern: 'forbidden-[0-9]{4}', action: 'block' }] });
  const redacted = await scene.guarded({ content_filters: [{ pattern: 'forbidden-[0-9]{4}', action: 'redact' }] });
  for (const served of BODY_FORMATS) {
    const body = bodyOf(served, { part: parts[served], plugins });
    const { status, body: reply } = await blocked.post(ROUTES[served], body);
    assert.equal(status, 403, JSON.stringify(reply));
    assert.equal((await redacted.post(ROUTES[served], body)).status, 200);
    const sent = scene.gateway.upstream.requests('text').at(-1)!.body.toString();
    assert.equal(sent.includes('forbidden-1234'), false);
    assert.match(sent, /this is .* here/);
  }
});

test('a router chooses only what the key may use', async () => {
  const key = await scene.guarded({ allowed_models: ['test/other'] });
  for (const served of BODY_FORMATS) {
    const { status, body } = await key.post(ROUTES[served], bodyOf(served, { model: 'svc/auto' }));
    assert.deepEqual([status, body.model], [200, 'test/other'], JSON.stringify(body));
  }
  const none = await scene.guarded({ allowed_models: ['test/elsewhere'] });
  const refused = await none.post(ROUTES.chat, bodyOf('chat', { model: 'svc/auto' }));
  assert.equal(refused.status, 404, JSON.stringify(refused.body));
});

test('a plugin that does what a disabled tool does is refused with 403 in every format, unless it is switched off', async () => {
  const { control } = scene;
  const made = await control.call('POST', '/workspaces', { name: 'no search', slug: 'no-search' });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { id } = made.body.data;
  const disabled = { disabled_server_tools: ['svc:web_search', 'svc:web_fetch', 'svc:fusion'] };
  assert.equal((await control.call('PATCH', `/workspaces/${id}`, disabled)).status, 200);
  const key = await control.keyIn(id, 'no search');
  for (const served of BODY_FORMATS) {
    for (const plugin of ['web', 'web-fetch', 'fusion']) {
      const post = async (plugins: Json[]) => {
        const headers = { authorization: `Bearer ${key.token}` };
        const reply = await scene.gateway.post(ROUTES[served], bodyOf(served, { plugins }), headers);
        return { status: reply.status, text: await reply.text() };
      };
      const refused = await post([{ id: plugin }]);
      assert.equal(refused.status, 403, refused.text);
      assert.match(refused.text, /plugins\[0\]\.id/);
      assert.equal((await post([{ id: plugin, enabled: false }])).status, 200);
    }
  }
});

/** `svc:files` through a whole gateway, in every format, streamed and not. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { controlOf } from '../workspaces/control.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' } }, yaml: { hosts: { europe: ['eu.test'] } } },
);
const control = controlOf(gateway);

async function upload(name: string, content: string): Promise<void> {
  const form = new FormData();
  form.append('file', new Blob([content]), name);
  const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
  assert.equal((await fetch(`${gateway.api}/files`, { method: 'POST', headers, body: form })).status, 200);
}

/** What the model reads of each of its calls, one turn each, and the answer. */
async function work(
  inputs: readonly Json[],
  { format = 'chat' as (typeof CLIENT_FORMATS)[number], stream = false, key = INFERENCE_KEY } = {},
) {
  const calls = inputs.map((input, at) => ({ id: `call_${at}`, name: 'files', arguments: JSON.stringify(input) }));
  gateway.upstream.script(
    'chat',
    [...calls.map((call) => ({ calls: [call] })), { text: 'ok' }].map((told) => answerOf('chat', stream, told)),
  );
  const turns = [{ role: 'user', content: 'Do it' }];
  const reply = await gateway.post(
    PATH_OF[format],
    {
      model: 'test/chat',
      stream,
      ...(format === 'messages' && { max_tokens: 1000 }),
      ...(format === 'responses' ? { input: turns } : { messages: turns }),
      tools: [{ type: 'svc:files' }],
    },
    { authorization: `Bearer ${key}` },
  );
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  const { json } = gateway.upstream.requests('chat').at(-1) as Json;
  const results: string[] = json.messages
    .filter(({ role }: Json) => role === 'tool')
    .map(({ content }: Json) => content);
  return { results, history: wholeAnswer(format, stream, text).history as Json[] };
}

for (const format of CLIENT_FORMATS) {
  test(`a model writes, edits, reads and lists files of the workspace | ${format}`, async () => {
    for (const stream of [false, true]) {
      const filename = `notes/${format}-${stream}.md`;
      const { results, history } = await work(
        [
          { operation: 'write', filename, content: 'one\ntwo\n' },
          { operation: 'edit', filename, old_text: 'two', new_text: 'größer' },
          { operation: 'read', filename },
          { operation: 'list' },
        ],
        { format, stream },
      );
      const [first, second] = results.slice(0, 2).map((result) => JSON.parse(result));
      assert.deepEqual([first.filename, first.mime_type, first.bytes], [filename, 'text/markdown', 8]);
      assert.notEqual(second.id, first.id);
      assert.equal(results[2], 'one\ngrößer\n');
      const listed = JSON.parse(results[3]!).filter((file: Json) => file.filename === filename);
      assert.deepEqual(listed, [second], 'the edited file is in place of the first');
      const content = await gateway.get(`/files/${second.id}/content`);
      assert.equal(await content.text(), 'one\ngrößer\n');
      if (format !== 'responses') continue;
      const [item] = history;
      assert.deepEqual(
        [item.type, item.operation, item.filename, item.file_id],
        ['svc:files', 'write', filename, first.id],
      );
    }
  });
}

test('what cannot be done is an error for the model', async () => {
  await upload('uploaded.txt', 'x');
  await upload('twice.txt', 'a a');
  const { results } = await work([
    { operation: 'read', filename: 'none' },
    { operation: 'write', filename: 'uploaded.txt', content: 'y' },
    { operation: 'edit', filename: 'uploaded.txt', old_text: 'x', new_text: 'y' },
    { operation: 'edit', filename: 'twice.txt', old_text: 'a', new_text: 'b' },
    { operation: 'edit', filename: 'twice.txt', old_text: 'c', new_text: 'b' },
    { operation: 'write', filename: '../x', content: 'y' },
    { operation: 'write', filename: 'x' },
    { operation: 'read' },
    { operation: 'write', filename: 'x', content: '' },
  ]);
  const problems = [
    /there is no file none/,
    /was uploaded/,
    /was uploaded/,
    /more than once/,
    /not in the file/,
    /segments/,
    /needs content/,
    /needs a filename/,
    /must not be empty/,
  ];
  for (const [at, problem] of problems.entries()) assert.match(results[at]!, problem);
});

test('a long text is read in parts', async () => {
  await upload('long.txt', 'x'.repeat(40_000));
  const { results } = await work([
    { operation: 'read', filename: 'long.txt' },
    { operation: 'read', filename: 'long.txt', offset: 30_000 },
  ]);
  assert.match(results[0]!, /^x{30000}\n\[10000 characters follow; read on with offset 30000\]$/);
  assert.match(results[1]!, /^x{10000}$/);
});

test('files of another workspace are not there', async () => {
  const workspace = await control.made({ name: 'Other', slug: 'other' });
  const { token } = await control.keyIn(workspace.id, 'other');
  await upload('mine.txt', 'x');
  const { results } = await work([{ operation: 'read', filename: 'mine.txt' }, { operation: 'list' }], { key: token });
  assert.match(results[0]!, /there is no file mine.txt/);
  assert.deepEqual(JSON.parse(results[1]!), []);
});

test('a regional host, which serves no files, refuses the tool', async () => {
  const { promise, resolve } = Promise.withResolvers<{ status: number | undefined; text: string }>();
  const headers = { host: 'eu.test', authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' };
  const request = http.request(gateway.api + PATH_OF.chat, { method: 'POST', headers }, (response) => {
    let text = '';
    response.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    response.on('end', () => resolve({ status: response.statusCode, text }));
  });
  const messages = [{ role: 'user', content: 'Do it' }];
  request.end(JSON.stringify({ model: 'test/chat', messages, tools: [{ type: 'svc:files' }] }));
  const { status, text } = await promise;
  assert.equal(status, 403, text);
  assert.match(text, /tools\[0\] requests svc:files: regional hosts serve no files/);
});

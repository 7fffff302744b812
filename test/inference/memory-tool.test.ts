/** `svc:memory`, `svc:text_editor` and `svc:code_interpreter` through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF } from '../../src/testing/clients/whole-answer.ts';
import { connectOnce, emptyDatabase } from '../../src/testing/database/database.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const scope = { after: (close: unknown) => after(close as () => Promise<void>) };
const target = await emptyDatabase(scope, migrations);
const gateway = await startGateway(scope, { providers: { chat: { kind: 'chat' } }, target });

interface Asking {
  format?: ClientFormat;
  type?: string;
  parameters?: Json;
  more?: Json;
}

/** What the model reads of each call, one a turn; the last member is the answer. */
async function told(inputs: readonly Json[], { format = 'chat', type = 'svc:memory', parameters = {}, more }: Asking) {
  const name = type.slice('svc:'.length);
  const turns = inputs.map((input, index) => ({
    calls: [{ id: `call_${index}`, name, arguments: JSON.stringify(input) }],
  }));
  gateway.upstream.script(
    'chat',
    [...turns, { text: 'ok' }].map((each) => answerOf('chat', false, { usage: { input: 10, output: 5 }, ...each })),
  );
  const messages = [{ role: 'user', content: 'hi' }];
  const reply = await gateway.post(PATH_OF[format], {
    model: 'test/chat',
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: messages } : { messages }),
    tools: [{ type, parameters }],
    ...more,
  });
  const text = await reply.text();
  if (reply.status !== 200) return { status: reply.status, results: [] as string[], text };
  const last: Json = gateway.upstream.requests('chat').at(-1)!.json;
  const results: string[] = last.messages
    .filter(({ role }: Json) => role === 'tool')
    .map(({ content }: Json) => content);
  return { status: 200, results, text };
}

const NOTE = '/memories/work/notes.md';

for (const format of CLIENT_FORMATS) {
  test(`a memory outlives its request, and belongs to its user or session alone | ${format}`, async () => {
    const user = (id: string) => (format === 'messages' ? { metadata: { user_id: id } } : { user: id });
    const mine = { format, more: user(`ann-${format}`) };
    const first = await told(
      [
        { command: 'view', path: '/memories' },
        { command: 'create', path: NOTE, file_text: 'one\ntwo\n' },
        { command: 'create', path: NOTE, file_text: 'again' },
        { command: 'create', path: `${NOTE}/below`, file_text: 'x' },
        { command: 'str_replace', path: NOTE, old_str: 'two', new_str: 'zwei' },
        { command: 'insert', path: NOTE, insert_line: 0, insert_text: 'nought' },
        { command: 'str_replace', path: NOTE, old_str: 'drei', new_str: '' },
      ],
      mine,
    );
    assert.equal(first.status, 200, first.text);
    for (const [index, expected] of [
      /is empty/,
      /^File created successfully at: \/memories\/work\/notes.md$/,
      /already exists/,
      /a path is either a file or a folder/,
      /^The memory file has been edited.$/,
      /^The memory file has been edited.$/,
      /did not appear verbatim/,
    ].entries()) {
      assert.match(first.results[index]!, expected);
    }
    const next = await told([{ command: 'view', path: NOTE, view_range: [1, 3] }], mine);
    assert.match(next.results[0]!, /line numbers:\n {5}1\tnought\n {5}2\tone\n {5}3\tzwei$/);
    for (const more of [user('bob'), { session_id: `ann-${format}` }]) {
      const other = await told([{ command: 'view', path: NOTE }], { format, more });
      assert.match(other.results[0]!, /does not exist/);
    }
    const last = await told(
      [
        { command: 'rename', old_path: '/memories/work', new_path: '/memories/old' },
        { command: 'rename', old_path: '/memories/old', new_path: '/memories/old/older' },
        { command: 'view', path: '/memories' },
        { command: 'delete', path: '/memories/old' },
        { command: 'delete', path: '/memories/old' },
        { command: 'delete', path: '/memories' },
      ],
      mine,
    );
    assert.match(last.results[0]!, /^Successfully renamed/);
    assert.match(last.results[1]!, /into itself/);
    assert.match(last.results[2]!, /\d+\t\/memories\/old\/notes.md$/);
    assert.match(last.results[3]!, /^Successfully deleted/);
    assert.match(last.results[4]!, /does not exist/);
    assert.match(last.results[5]!, /cannot be deleted/);
    if (format === 'responses')
      assert.match(last.text, /"type":"svc:memory".*"action":"delete","key":"\/memories\/old"/);
  });
}

test('paths outside of the memory, texts that cannot be stored and a full memory are errors for the model', async () => {
  const paths = [
    '/etc/passwd',
    '/memories/../x',
    '/memories//x',
    '/memoriesx',
    'memories/x',
    `/memories${'/a'.repeat(11)}`,
  ];
  const { results } = await told(
    [
      ...paths.map((path) => ({ command: 'create', path, file_text: 'x' })),
      { command: 'create', path: '/memories/nul', file_text: 'a\0b' },
      { command: 'create', path: '/memories/x' },
    ],
    { more: { user: 'eve' } },
  );
  for (const result of results.slice(0, paths.length)) assert.match(result, /not a path in|at most 10 parts/);
  assert.match(results.at(-2)!, /U\+0000/);
  assert.match(results.at(-1)!, /file_text is missing/);
  const large = Array.from({ length: 10 }, (_, index) => ({
    command: 'create',
    path: `/memories/${index}`,
    file_text: 'x'.repeat(256 * 1024),
  }));
  const filled = await told(large, { more: { user: 'eve' } });
  assert.match(filled.results[7]!, /created/);
  assert.match(filled.results[8]!, /2097152 bytes in all/);
});

test('a request without the user or session that the memory belongs to is refused', async () => {
  for (const [parameters, more, message] of [
    [{}, {}, /tools\[0\]\.parameters needs user or session_id/],
    [{ scope: 'user' }, { session_id: 's' }, /needs user/],
    [{ scope: 'session' }, { user: 'u' }, /needs session_id/],
    [{ scope: 'key' }, { user: 'u' }, /scope must be one of/],
  ] as const) {
    const { status, text } = await told([], { parameters, more });
    assert.equal(status, 400);
    assert.match(text, message);
  }
});

test('two edits of one file at the same time both count', async () => {
  const more = { user: 'carl' };
  await told([{ command: 'create', path: '/memories/n', file_text: '' }], { more });
  const append = (line: string) => ({
    id: `call_${line}`,
    name: 'memory',
    arguments: JSON.stringify({ command: 'insert', path: '/memories/n', insert_line: 0, insert_text: `${line}\n` }),
  });
  gateway.upstream.script('chat', [
    answerOf('chat', false, { calls: ['a', 'b', 'c', 'd'].map(append) }),
    answerOf('chat', false, { text: 'ok' }),
  ]);
  await gateway.post('/chat/completions', {
    model: 'test/chat',
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'svc:memory' }],
    ...more,
  });
  const { results } = await told([{ command: 'view', path: '/memories/n' }], { more });
  assert.deepEqual([...results[0]!.matchAll(/\t(\w)/g)].map(([, line]) => line).toSorted(), ['a', 'b', 'c', 'd']);
});

test('the text editor changes files in the sandbox of the request', { skip }, async () => {
  const { results, text } = await told(
    [
      { command: 'create', path: 'src/a.txt', file_text: 'one\ntwo\n' },
      { command: 'str_replace', path: 'src/a.txt', old_str: 'two', new_str: '2' },
      { command: 'insert', path: 'src/a.txt', insert_line: 1, insert_text: 'half' },
      { command: 'view', path: 'src/a.txt' },
      { command: 'view', path: '.' },
      { command: 'view', path: 'none' },
      { command: 'create', path: '../../etc/x', file_text: 'x' },
      { command: 'create', path: 'src/a.txt', file_text: 'x' },
    ],
    { format: 'responses', type: 'svc:text_editor' },
  );
  assert.match(results[0]!, /created successfully/);
  assert.match(results[3]!, /1\tone\n {5}2\thalf\n {5}3\t2/);
  assert.match(results[4]!, /src\/a\.txt/);
  assert.match(results[5]!, /no file none/);
  assert.match(results[6]!, /error/);
  assert.match(results[7]!, /exists already/);
  assert.match(text, /"type":"svc:text_editor".*"command":"create","filePath":"src\/a.txt"/);
});

test('a program in Python runs in the sandbox, and what it prints comes back', { skip }, async () => {
  const { results, text } = await told(
    [
      { code: 'print("a\'b", 6 * 7)\nopen("n.txt", "w").write("x")' },
      { code: 'import os, sys\nprint(os.path.exists("n.txt"))\nsys.exit(3)' },
    ],
    { format: 'responses', type: 'svc:code_interpreter' },
  );
  const [first, second] = results.map((result) => JSON.parse(result));
  // The machine of the test may have no Python.
  if (first.exit_code === 127) assert.match(first.stderr, /python3/);
  else {
    assert.deepEqual([first.stdout, first.exit_code], ["a'b 42\n", 0], first.stderr);
    assert.deepEqual([second.stdout, second.exit_code], ['True\n', 3]);
  }
  assert.match(text, /"type":"svc:code_interpreter".*"language":"python"/);
});

test('managers of the workspace see and delete what models keep', async () => {
  await told([{ command: 'create', path: '/memories/a.md', file_text: 'likes tea' }], { more: { user: 'seen' } });
  await told([{ command: 'create', path: '/memories/b.md', file_text: 'of a session' }], {
    more: { session_id: 'seen' },
  });
  const call = async (path: string, method = 'GET') => {
    const headers = { authorization: `Bearer ${MANAGEMENT_KEY}` };
    const reply = await fetch(`${gateway.api}${path}`, { method, headers });
    return { status: reply.status, body: (await reply.json()) as Json };
  };
  const { data, total_count } = (await call('/memories?user=seen')).body;
  assert.deepEqual([data[0].scope, data[0].file_count, data[0].bytes, total_count], ['user', 1, 9, 1]);
  assert.equal((await call('/memories?session_id=seen')).body.data[0].scope, 'session');
  assert.equal((await call('/memories?session_id=seen&user=seen')).status, 400);
  assert.ok((await call('/memories')).body.total_count >= 2);
  const path = `/memories/${data[0].id}`;
  const [file] = (await call(path)).body.data.files;
  assert.deepEqual([file.path, file.content], ['/memories/a.md', 'likes tea']);
  // In the database it cannot be read.
  const client = await connectOnce(scope, target);
  const { rows } = await client.query("select encode(sealed, 'escape') as sealed, content from memory_files");
  assert.ok(rows.length >= 2 && rows.every(({ content }: Json) => content === null));
  assert.doesNotMatch(JSON.stringify(rows), /likes tea/);

  assert.deepEqual((await call(path, 'DELETE')).body, { deleted: true });
  assert.equal((await call(path)).status, 404);
  assert.equal((await call(path, 'DELETE')).status, 404);
  const [entry] = (await call('/audit?resource_type=memory')).body.data;
  assert.deepEqual([entry.action, entry.resource_id], ['memory.deleted', data[0].id]);
  const { results } = await told([{ command: 'view', path: '/memories' }], { more: { user: 'seen' } });
  assert.doesNotMatch(results.join(), /a\.md/);
});

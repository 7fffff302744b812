/** References to files in bodies of every format: all are found where they are, and nothing else is taken for one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chat, messages, responses } from '../index.ts';
import { fileReferences, replaceReferences } from './file-words.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const ID = 'svc_file_x';
const text = (type: string) => fc.record({ type: fc.constant(type), text: fc.constantFrom(ID, 'see', '') });
const role = fc.constantFrom('user', 'assistant');

/** Parts with a reference, and parts that only look like one. */
const PARTS = {
  chat: fc.oneof(
    text('text'),
    fc.constant({ type: 'file', file: { file_id: ID } }),
    fc.constant({ type: 'file', file: { file_data: ID } }),
    fc.constant({ type: 'image_url', image_url: { url: ID }, file: { file_id: ID } }),
  ),
  messages: fc.letrec<{ block: Json; blocks: Json[] }>((tie) => ({
    blocks: fc.array(tie('block'), { maxLength: 3 }),
    block: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      text('text'),
      fc.constant({ type: 'image', source: { type: 'file', file_id: ID } }),
      fc.constant({ type: 'document', source: { type: 'file', file_id: ID }, title: ID }),
      fc.constant({ type: 'document', source: { type: 'text', data: ID, file_id: ID } }),
      fc.constant({ type: 'container_upload', file_id: ID }),
      fc.constant({
        type: 'tool_use',
        id: 'a',
        name: 'b',
        input: { content: [{ type: 'image', source: { type: 'file', file_id: ID } }] },
      }),
      fc.record({ type: fc.constant('tool_result'), tool_use_id: fc.constant('a'), content: tie('blocks') }),
      fc.record({
        type: fc.constant('document'),
        source: fc.record({ type: fc.constant('content'), content: tie('blocks') }),
      }),
    ),
  })).block,
  responses: fc.oneof(
    text('input_text'),
    fc.constant({ type: 'input_file', file_id: ID }),
    fc.constant({ type: 'input_image', file_id: ID, image_url: null }),
    fc.constant({ type: 'input_image', file_id: ID, image_url: 'https://example.com/a.png' }),
    fc.constant({ type: 'item_reference', file_id: ID }),
  ),
};

/** How many parts of a list are references, by their own rule. */
function countIn(value: Json): number {
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + countIn(each), 0);
  if (typeof value !== 'object' || value === null || value.type === 'tool_use') return 0;
  const { type, source, file, file_id: id, image_url: url, content, output } = value;
  const own =
    (type === 'file' && file.file_id !== undefined) ||
    ((type === 'image' || type === 'document') && source.type === 'file') ||
    (type === 'container_upload' && id !== undefined) ||
    (type === 'input_file' && id !== undefined) ||
    (type === 'input_image' && typeof url !== 'string');
  return own ? 1 : countIn(content) + countIn(output) + countIn(source?.content);
}

const at = (body: Json, path: string): Json =>
  path.split(/[.[\]]+/).reduce((value, key) => (key === '' ? value : value[key]), body);

for (const format of [chat, messages, responses]) {
  const { root } = format.fileWords!;
  const content = fc.oneof(
    fc.constant(ID),
    fc.array(PARTS[format.id as keyof typeof PARTS] as fc.Arbitrary<Json>, { maxLength: 5 }),
  );
  const items =
    format === responses
      ? fc.record({ type: fc.constant('function_call_output'), output: content })
      : fc.record({ role, content });
  const turns = fc.array(fc.oneof(fc.record({ role, content }), items as fc.Arbitrary<Json>), { maxLength: 4 });
  const body = turns.map(
    (list): Json => JSON.parse(JSON.stringify({ [root]: list, tools: [{ type: 'file', file: { file_id: ID } }] })),
  );

  test(`${format.id}: every reference is found with the path of its id, and nothing else`, () => {
    fc.assert(
      fc.property(body, (value) => {
        const found = fileReferences(value, format.fileWords!);
        assert.equal(found.length, countIn(value[root]));
        for (const { path, id } of found) assert.deepEqual([at(value, path), id], [ID, ID]);
        assert.equal(new Set(found.map(({ path }) => path)).size, found.length);
      }),
    );
  });

  test(`${format.id}: a body whose references became texts, or were removed, has none, and is else the same`, () => {
    fc.assert(
      fc.property(body, fc.boolean(), (value, removes) => {
        const changed = structuredClone(value);
        replaceReferences(changed[root], format.fileWords!, (part, { holds }) =>
          removes || holds === 'upload'
            ? undefined
            : format.fileWords!.text(part, { text: 'inlined', filename: 'a.txt' }),
        );
        assert.equal(fileReferences(changed, format.fileWords!).length, 0);
        if (countIn(value[root]) === 0) assert.deepEqual(changed, value);
        else assert.notDeepEqual(changed, value);
      }),
    );
  });
}

/** A model that fixes a failing test with shell and patches, in a sandbox and in every format; its prompt only grows. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const SPOKEN = ['chat', 'messages', 'responses'] as const;
type Spoken = (typeof SPOKEN)[number];

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: Object.fromEntries(SPOKEN.map((kind) => [kind, { kind }])) },
);

const patch = (type: string, path: string, diff?: string) => ({ name: 'apply_patch', type, path, diff });
const shell = (...commands: string[]) => ({ name: 'shell', commands });

const TEST = `+[ "$(sh add.sh 2 3)" = 5 ] && echo ok || { echo "2 + 3 is not $(sh add.sh 2 3)"; exit 1; }
+[ "$(sh add.sh -1 1)" = 0 ] || exit 2
`;
/** What the model does, one turn each, and what it reads. */
const WORK: [Json, RegExp][] = [
  [shell('ls -a'), /"exit_code":0/],
  [patch('create_file', 'add.sh', '+#!/bin/sh\n+# Adds two numbers.\n+echo $(($1 - $2))\n'), /^Created add.sh$/],
  [patch('create_file', 'test.sh', TEST), /^Created test.sh$/],
  [patch('create_file', 'test.sh', '+exit 0\n'), /test.sh exists already/],
  [shell('sh test.sh'), /2 \+ 3 is not -1.*"exit_code":1/],
  [patch('update_file', 'add.sh', '@@\n-echo $(($1 * $2))\n+echo $(($1 + $2))\n'), /the context is not in the file/],
  [shell('cat add.sh'), /\$1 - \$2/],
  [
    patch('update_file', 'add.sh', ' # Adds two numbers.\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n'),
    /^Updated add.sh$/,
  ],
  [shell('sh test.sh', 'echo "2 + 3 = $(sh add.sh 2 3)" > report.txt'), /"ok\\n"/],
  [patch('delete_file', 'none.sh'), /there is no file none.sh/],
  [patch('delete_file', 'test.sh'), /^Deleted test.sh$/],
  [shell('ls; cat report.txt'), /add\.sh\\nreport\.txt\\n2 \+ 3 = 5/],
];

/** In chat a text between calls becomes part of the one text of the answer, so the next request begins otherwise. */
function turnsFor(format: ClientFormat): Told[] {
  return WORK.map(([{ name, ...input }], index) => ({
    ...(index % 3 === 0 && format !== 'chat' && { text: `Step ${index}.` }),
    calls: [{ id: `call_${index}`, name, arguments: JSON.stringify(input) }],
  }));
}

const TOOLS = [
  { type: 'svc:shell', parameters: { engine: 'svc' } },
  { type: 'svc:apply_patch', parameters: { engine: 'svc' } },
];

function bodyOf(format: ClientFormat, spoken: Spoken, stream: boolean, history: Json[] = []): Json {
  const messages = [{ role: 'user', content: 'Fix the test' }, ...history];
  return {
    model: `test/${spoken}`,
    stream,
    ...(format === 'messages' && { max_tokens: 5000 }),
    ...(format === 'responses' ? { input: messages } : { messages }),
    tools: TOOLS,
  };
}

async function ask(format: ClientFormat, spoken: Spoken, body: Json, answers: readonly Told[]) {
  const answer = (told: Told) =>
    spoken === 'responses' ? responsesAnswer(body.stream, told) : answerOf(spoken, body.stream, told);
  gateway.upstream.script(spoken, answers.map(answer));
  const before = gateway.upstream.requests(spoken).length;
  const reply = await gateway.post(PATH_OF[format], body);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  const sent: Json[] = gateway.upstream
    .requests(spoken)
    .slice(before)
    .map(({ json }) => json);
  return { ...wholeAnswer(format, body.stream, text), sent };
}

/**
 * The conversation of a request to an upstream, and all else of it. Without what is not in the prompt: breakpoints of prompt
 * caches, which move, and id and status of items in the responses format, which a history does not have.
 */
function partsOf(spoken: Spoken, sent: Json): { turns: string[]; rest: string } {
  const member = spoken === 'responses' ? 'input' : 'messages';
  const isUnread = (key: string) =>
    key === 'cache_control' || (spoken === 'responses' && ['id', 'status'].includes(key));
  const plain = JSON.parse(JSON.stringify(sent), (key, value) => (isUnread(key) ? undefined : value));
  // The limit of output is for all turns together.
  const { [member]: conversation, max_tokens: _, max_output_tokens: __, ...rest } = plain;
  return { turns: conversation.map((turn: Json) => JSON.stringify(turn)), rest: JSON.stringify(rest) };
}

function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value];
  return value !== null && typeof value === 'object' ? Object.values(value).flatMap(textsIn) : [];
}

describe('in a sandbox', { skip }, () => {
  CLIENT_FORMATS.forEach((format, index) => {
    const ways = index % 2 === 0 ? [false, true] : [true, false];
    for (const stream of ways.slice(0, samples(2))) {
      // Of two clients of a format, one is of an upstream that speaks it.
      const spoken = SPOKEN[(index + Number(stream)) % SPOKEN.length]!;
      test(`twelve turns of shell and patches fix a test, on a prompt that only grows | ${format} to ${spoken}`, async () => {
        const first = await ask(format, spoken, bodyOf(format, spoken, stream), [
          ...turnsFor(format),
          { text: 'Fixed.' },
        ]);
        assert.equal(first.sent.length, WORK.length + 1);
        const next = await ask(
          format,
          spoken,
          bodyOf(format, spoken, stream, [...first.history, { role: 'user', content: 'Thanks' }]),
          [{ text: 'Welcome.' }],
        );
        const requests = [...first.sent, ...next.sent].map((sent) => partsOf(spoken, sent));
        for (const [at, { turns: conversation, rest }] of requests.entries()) {
          if (at === 0) continue;
          const before = requests[at - 1]!;
          assert.deepEqual(conversation.slice(0, before.turns.length), before.turns, `turn ${at}`);
          assert.equal(rest, before.rest, `turn ${at}`);
          const read = WORK[at - 1]?.[1];
          const added = conversation.slice(before.turns.length).map((turn) => JSON.parse(turn));
          if (read !== undefined)
            assert.ok(
              textsIn(added).some((text) => read.test(text)),
              JSON.stringify(added),
            );
        }
        if (format !== 'responses') return;
        const patches = first.history.filter(({ type }: Json) => type === 'svc:apply_patch');
        assert.deepEqual(
          patches.map(({ status, operation }: Json) => [status, operation.type, operation.path]),
          WORK.flatMap(([{ name, type, path }, { source }]) =>
            name === 'shell' ? [] : [[source.startsWith('^') ? 'completed' : 'incomplete', type, path]],
          ),
        );
      });
    }
  });
});

for (const format of CLIENT_FORMATS) {
  test(`a patch with the engine auto or native is a call that the client runs | ${format}`, async () => {
    for (const parameters of [undefined, { engine: 'native' }]) {
      const tools = [{ type: 'svc:apply_patch', ...(parameters && { parameters }) }];
      const call = { id: 'call_1', name: 'apply_patch', arguments: '{"type":"delete_file","path":"a"}' };
      const { finish, sent } = await ask(format, 'chat', { ...bodyOf(format, 'chat', false), tools }, [
        { calls: [call] },
      ]);
      assert.equal(finish, { chat: 'tool_calls', messages: 'tool_use', responses: 'completed' }[format]);
      assert.equal(sent.length, 1);
    }
  });
}

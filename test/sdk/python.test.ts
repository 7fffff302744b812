/**
 * The Python client libraries, unmodified, against the gateway in front of upstreams of both formats. Each program in
 * `test/sdk/python/` uses one library as an application does, and prints what it got.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type Json, UPSTREAMS } from '../../src/testing/gateway/sdk.ts';
import { PYTHON_CLIENTS, type Python, pythonWith } from '../../src/testing/process/python.ts';
import { answerOf, type Format } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

interface Client {
  name: string;
  library: string;
  program: string;
  format: 'openai' | 'anthropic';
}

const CLIENTS: readonly Client[] = [
  { name: 'openai', library: 'openai', program: 'openai_client.py', format: 'openai' },
  { name: 'anthropic', library: 'anthropic', program: 'anthropic_client.py', format: 'anthropic' },
  { name: 'langchain-openai', library: 'langchain-openai', program: 'langchain_client.py', format: 'openai' },
  { name: 'litellm (openai)', library: 'litellm', program: 'litellm_client.py', format: 'openai' },
  { name: 'litellm (anthropic)', library: 'litellm', program: 'litellm_client.py', format: 'anthropic' },
];
const TEXT = 'Bonjour, 北京 🌤';
const USAGE = { input: 12, output: 7 };

const closers: (() => Promise<void>)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const atEnd = { after: (close: unknown) => void closers.push(close as () => Promise<void>) };
const PROGRAMS = path.join(import.meta.dirname, 'python');
/** Made by the first test: the packages may take minutes, and tests of other files in this process must not wait. */
let made: Promise<Gateway> | undefined;

function bench(): Promise<Gateway> {
  made ??= startGateway(atEnd, { providers: { chat: { kind: 'openrouter' }, messages: { kind: 'messages' } } });
  return made;
}

/** What a program asks for, in this order; all but the last one are of every client. */
function answersOf({ name }: Client, form: Format): Answer[] {
  const call = { id: 'call_1', name: 'weather', arguments: '{"city":"Köln"}' };
  return [
    answerOf(form, false, { text: TEXT, usage: USAGE }),
    answerOf(form, true, { text: TEXT, usage: USAGE }),
    answerOf(form, false, { calls: [call] }),
    answerOf(form, false, { text: 'Rain.' }),
    ...(name === 'openai' ? [answerOf(form, false, { text: 'From responses.' })] : []),
  ];
}

const isHere = ({ library }: Client) => PYTHON_CLIENTS.some((each) => each.startsWith(`${library}==`));

/** A run of a program with its environment. */
type Run = [program: string, env: Record<string, string>];

/** Every program of a library, in this order. */
function runsOf(library: string): Run[] {
  const clients = CLIENTS.filter((client) => client.library === library);
  const runs = clients.flatMap(({ program, format }) =>
    UPSTREAMS.map((form): Run => [program, { MODEL: `test/${form}`, FORMAT: format }]),
  );
  if (library === 'openai') runs.push(['openai_batches.py', {}]);
  if (library === 'anthropic') runs.push(['anthropic_batches.py', { MODEL: 'simulated/echo' }]);
  return runs;
}

const outcomes = new Map<string, Promise<Json[]>>();
/** The first request of a client at an upstream, by name and format: how many that upstream had received before. */
const firsts = new Map<string, number>();

/** What a program saw. All programs of its library run in one process, which loads the library once. */
async function seenBy(python: Python, library: string, [program, env]: Run): Promise<Json> {
  const runs = runsOf(library);
  const outcome = outcomes.get(library) ?? runAll(python, library, runs);
  outcomes.set(library, outcome);
  const at = runs.findIndex((run) => run[0] === program && JSON.stringify(run[1]) === JSON.stringify(env));
  const { seen, failed } = (await outcome)[at];
  assert.equal(failed, undefined, failed);
  return seen;
}

async function runAll(python: Python, library: string, runs: readonly Run[]): Promise<Json[]> {
  const gateway = await bench();
  for (const form of UPSTREAMS) {
    const answers: Answer[] = [];
    const before = gateway.upstream.requests(form).length;
    for (const client of CLIENTS.filter((client) => client.library === library)) {
      firsts.set(`${client.name} ${form}`, before + answers.length);
      answers.push(...answersOf(client, form));
    }
    gateway.upstream.script(form, answers);
  }
  const common = { ROOT: gateway.url, KEY: INFERENCE_KEY };
  const list = runs.map(([program, env]) => [path.join(PROGRAMS, program), { ...common, ...env }]);
  return JSON.parse(await python.run(atEnd, [path.join(PROGRAMS, 'all.py'), JSON.stringify(list)], {}));
}

for (const client of CLIENTS.filter(isHere)) {
  for (const form of UPSTREAMS) {
    test(`Python ${client.name} | text, streams, tools and errors | ${form} upstream`, async (t) => {
      const python = await pythonWith(PYTHON_CLIENTS);
      if (python.skip !== false) return t.skip(python.skip);
      const { program, format, library } = client;
      const seen = await seenBy(python, library, [program, { MODEL: `test/${form}`, FORMAT: format }]);
      assert.equal(seen.whole, TEXT);
      assert.equal(seen.stream, TEXT);
      assert.ok(['stop', 'end_turn'].includes(seen.finish), seen.finish);
      assert.deepEqual(seen.usage, [USAGE.input, USAGE.output]);
      assert.deepEqual(seen.stream_usage, [USAGE.input, USAGE.output]);
      assert.deepEqual(seen.call, ['call_1', 'weather', { city: 'Köln' }]);
      assert.equal(seen.after_tools, 'Rain.');
      assert.match(seen.unknown_model, new RegExp(`did you mean test/${form}\\?`));
      assert.equal(seen.wrong_key, 401);
      if (client.name === 'openai') assert.equal(seen.responses, 'From responses.');
      const answered = (await bench()).upstream.requests(form)[firsts.get(`${client.name} ${form}`)! + 3];
      assert.ok(JSON.stringify(answered?.json).includes('rain, 9 °C'));
    });
  }
}

test('Python openai | batches: input, output and error files', async (t) => {
  const python = await pythonWith(PYTHON_CLIENTS);
  if (python.skip !== false) return t.skip(python.skip);
  assert.deepEqual(await seenBy(python, 'openai', ['openai_batches.py', {}]), {
    made: ['batch', 'validating', { team: 'research' }],
    done: ['completed', 'simulated/script', { completed: 1, failed: 1, total: 2 }, true],
    output: [['a', TEXT]],
    errors: [['b', 400]],
    bad: ['failed', 'duplicate_custom_id', 2, 'custom_id'],
    missing: 404,
    cancelling: 'cancelling',
    cancelled: 'cancelled',
    listed: true,
    expires: 3_600,
    files: true,
    deleted: true,
  });
});

test('Python anthropic | message batches', async (t) => {
  const python = await pythonWith(PYTHON_CLIENTS);
  if (python.skip !== false) return t.skip(python.skip);
  const seen = await seenBy(python, 'anthropic', ['anthropic_batches.py', { MODEL: 'simulated/echo' }]);
  for (const name of ['plain', 'beta']) {
    assert.deepEqual(seen[name], {
      status: ['in_progress', 'ended'],
      counts: [2, 2],
      took: true,
      texts: { a: 'first', b: 'second' },
      listed: true,
      deleted: 'message_batch_deleted',
    });
  }
  assert.deepEqual([seen.cancelled, seen.all], ['canceling', 50]);
  assert.deepEqual([seen.conflict, seen.unknown], ['invalid_request_error', 'not_found_error']);
  assert.match(seen.duplicate, /^requests\.1\.custom_id "a" is also that of requests\.0/);
});

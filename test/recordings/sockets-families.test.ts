/**
 * Recorded traffic of Bedrock and Cohere through a whole gateway: each recording is the answer of an upstream of its own,
 * played over a socket to clients of every form, cut and broken off at places that a seed chooses. More places are tried
 * without sockets, in test/recordings/pipeline-families.test.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  assertContent,
  assertServed,
  readServedStream,
  readServedWhole,
  SERVED_FORMS,
  type ServedForm,
} from '../../src/testing/clients/served-answer.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { corpusMissing, type Recording, recordings } from '../../src/testing/recordings/corpus.ts';
import { seeded } from '../../src/testing/recordings/cuts.ts';
import { type RecordedAnswer, saysSomething } from '../../src/testing/recordings/recorded-answer.ts';
import {
  readCohereStream,
  readCohereWhole,
  readConverseStream,
  readConverseWhole,
} from '../../src/testing/recordings/recorded-families.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
/** Of each stream, by turns in each served form. */
const PLACES = exhaustive ? 100 : 20;
const PATHS: Record<ServedForm, string> = { chat: '/chat/completions', messages: '/messages', responses: '/responses' };
const ENDS = ['close', 'cut', 'reset'] as const;

const all = [
  ...recordings(['converse', 'converse-stream'], /^bedrock$/),
  ...recordings(['chat'], /^cohere$/).filter(({ text }) => !/"generation_id"/.test(text)),
];
const isCohere = ({ provider }: Recording) => provider === 'cohere';
const keyOf = (recording: Recording) => `r${all.indexOf(recording)}`;

describe('recorded traffic of Bedrock and Cohere through sockets', { skip: corpusMissing }, () => {
  let gateway: Gateway;
  const closing: (() => Promise<void>)[] = [];

  before(async () => {
    const kinds = all.map((one) => [keyOf(one), { kind: isCohere(one) ? 'cohere' : 'converse' }]);
    const options = { providers: Object.fromEntries(kinds) };
    gateway = await startGateway({ after: (close) => closing.push(close as () => Promise<void>) }, options);
  });

  // The gateway before the database that it stands on.
  after(async () => {
    for (const close of closing.toReversed()) await close();
  });

  async function ask(recording: Recording, served: ServedForm, more: Partial<Answer> = {}) {
    const { status, headers, bytes, stream } = recording;
    gateway.upstream.script(keyOf(recording), { status, headers, chunks: [bytes], ...more });
    const prompt =
      served === 'responses' ? { input: 'hi' } : { max_tokens: 500, messages: [{ role: 'user', content: 'hi' }] };
    const response = await gateway.post(PATHS[served], { model: `test/${keyOf(recording)}`, stream, ...prompt });
    return { status: response.status, text: await response.text() };
  }

  const streams = all.filter(({ status, stream }) => status === 200 && stream);

  test('every answer reaches clients of every form, and every error as one', async () => {
    for (const recording of all) {
      for (const served of SERVED_FORMS) {
        const where = `${recording.id} as ${served}`;
        const { status, text } = await ask(recording, served);
        if (recording.status >= 400) {
          assert.ok(status >= 400, where);
          assert.equal(typeof JSON.parse(text).error.message, 'string', where);
          continue;
        }
        const recorded = read(recording);
        const seen = recording.stream ? readServedStream(served, text, 'finish') : readServedWhole(served, text);
        if (recorded.complete) assertServed(served, seen, recorded, where);
        else {
          assert.ok(seen.error !== null, where);
          assertContent(served, seen, recorded, where);
        }
      }
    }
  });

  test('a stream cut in two by the network reads as it does in one piece', async () => {
    for (const recording of streams) {
      for (const [turn, at] of seeded(`${recording.id} cuts`, PLACES, recording.bytes.length).entries()) {
        const served = SERVED_FORMS[turn % SERVED_FORMS.length]!;
        const { text } = await ask(recording, served, { pieces: [at] });
        const seen = readServedStream(served, text, 'finish');
        assertContent(served, seen, read(recording), `${recording.id} as ${served} cut at ${at}`);
        assert.equal(seen.error === null, read(recording).complete);
      }
    }
  });

  test('a stream that breaks off keeps what was seen and ends in one error, however its connection ends', async () => {
    for (const recording of streams) {
      for (const [turn, at] of seeded(`${recording.id} ends`, PLACES, recording.bytes.length).entries()) {
        const served = SERVED_FORMS[turn % SERVED_FORMS.length]!;
        // Each ending has its turn in each form.
        const end = ENDS[(turn + Math.floor(turn / SERVED_FORMS.length)) % ENDS.length]!;
        const where = `${recording.id} as ${served} ended by ${end} at ${at}`;
        const recorded = read(
          { ...recording, bytes: recording.bytes.subarray(0, at) },
          end === 'close' ? 'close' : 'break',
        );
        const { status, text } = await ask(recording, served, { truncateAt: at, end });
        if (status !== 200) {
          // A reset may take what was still on its way.
          assert.ok(end === 'reset' || !saysSomething(recorded), where);
          continue;
        }
        const seen = readServedStream(served, text, 'finish');
        if (recorded.complete && end !== 'reset') assertServed(served, seen, recorded, where);
        else if (!recorded.complete) assert.ok(seen.error !== null, `${where}: ends as if it were complete`);
        if (end !== 'reset') assertContent(served, seen, recorded, where);
      }
    }
  });
});

function read(recording: Recording, ending: 'close' | 'break' = 'close'): RecordedAnswer {
  const { stream, bytes, text } = recording;
  if (isCohere(recording)) return stream ? readCohereStream(bytes, ending) : readCohereWhole(text);
  return stream ? readConverseStream(bytes, ending) : readConverseWhole(text);
}

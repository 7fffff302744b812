/**
 * Every recorded answer of Gemini, of Google's own service and of Vertex AI, from its bytes through the whole pipeline
 * to clients of every served format: as it arrived, cut anywhere, and broken off anywhere.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as formats from '../../src/formats/index.ts';
import {
  assertServed,
  readServedWhole,
  type ServedAnswer,
  type ServedForm,
} from '../../src/testing/clients/served-answer.ts';
import { type PipelineAnswer, playThrough } from '../../src/testing/laws/pipeline.ts';
import { corpusMissing, type Recording, recordings } from '../../src/testing/recordings/corpus.ts';
import {
  cutBytes,
  cutPositions,
  everyPosition,
  isBorder,
  SHORT_STREAM_BYTES,
  sampleOf,
  seeded,
} from '../../src/testing/recordings/cuts.ts';
import { type Ending, type RecordedAnswer, saysSomething } from '../../src/testing/recordings/recorded-answer.ts';
import { readGeminiStream, readGeminiWhole } from '../../src/testing/recordings/recorded-gemini.ts';
import { assertRefused, assertTold, costOf, countsOfRow } from '../../src/testing/recordings/recorded-play.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
/** Every served format. */
const SERVED = Object.values(formats).flatMap((one) => ('encodeReply' in one ? [one.id as ServedForm] : []));
const CUTS = 40;
const BREAKS = 24;

const all = recordings(['generate'], /^(google|vertex)$/).filter(
  ({ text }) => !/"batch"|"operation"|^\{\s*"name"/.test(text),
);
const streams = all.filter((one) => one.stream && one.status === 200);
const whole = all.filter((one) => !one.stream && one.status === 200);

describe('recorded traffic of Gemini', { skip: corpusMissing }, () => {
  test('the corpus holds streams, whole answers and errors of both services', () => {
    for (const provider of ['google', 'vertex']) {
      for (const list of [streams, whole, all.filter(({ status }) => status >= 400)]) {
        assert.ok(list.some((one) => one.provider === provider));
      }
    }
  });

  test('every stream reaches clients of every format with all of its content', async () => {
    for (const recording of streams) {
      const recorded = readGeminiStream(recording.bytes);
      for (const served of SERVED) {
        check(served, await play(recording, served, true, [recording.bytes]), recorded, `${recording.id} as ${served}`);
      }
    }
  });

  test('every whole answer does, also when sent as a stream', async () => {
    for (const recording of whole) {
      const recorded = readGeminiWhole(recording.text);
      for (const served of SERVED) {
        const where = `${recording.id} as ${served}`;
        const answer = await play(recording, served, false, [recording.bytes]);
        if (!recorded.complete) assertRefused(answer, where);
        else {
          assert.equal(answer.status, 200, `${where}: ${answer.text}`);
          const seen = readServedWhole(served, answer.text);
          assertServed(served, seen, recorded, where);
          assertRow(answer, seen, recorded, where);
        }
        check(served, await play(recording, served, true, [recording.bytes]), recorded, `${where} streamed`);
      }
    }
  });

  test('one byte at a time, with other line ends, and cut in two anywhere, the client gets the same text', async () => {
    for (const recording of streams) {
      const { bytes, id } = recording;
      const every = cutPositions(bytes, id);
      const positions = exhaustive && bytes.length <= SHORT_STREAM_BYTES ? every : sampleOf(every, CUTS, id);
      const lines = Buffer.from(bytes.toString().replaceAll(/\r\n/g, '\n'));
      for (const served of SERVED) {
        const { text } = await play(recording, served, true, [bytes]);
        assert.equal((await play(recording, served, true, cutBytes(bytes, 1))).text, text, id);
        assert.equal((await play(recording, served, true, [lines])).text, text, id);
        for (const at of positions) {
          const cut = await play(recording, served, true, cutBytes(bytes, [at]));
          assert.equal(cut.text, text, `${id} as ${served} cut at ${at}`);
        }
      }
    }
  });

  test('a stream that breaks off anywhere keeps what was seen and ends in one error', async () => {
    for (const recording of streams) {
      const { bytes, id } = recording;
      const borders = everyPosition(bytes).filter((at) => isBorder(bytes, at));
      const positions = exhaustive
        ? cutPositions(bytes, id)
        : [...sampleOf(borders, BREAKS / 2, id), ...seeded(`${id} end`, BREAKS, bytes.length)];
      for (const [turn, at] of positions.entries()) {
        const served = SERVED[turn % SERVED.length]!;
        for (const ending of ['close', 'break'] as const) {
          const kept = bytes.subarray(0, at);
          const answer = await play(recording, served, true, [kept], ending);
          check(served, answer, readGeminiStream(kept, ending), `${id} as ${served} ended by ${ending} at ${at}`);
        }
      }
    }
  });

  test('a whole answer that breaks off is an error', async () => {
    for (const { id, bytes, ...recording } of whole) {
      for (const [turn, at] of seeded(id, BREAKS / 2, bytes.length).entries()) {
        if (bytes.subarray(at).toString().trim() === '') continue;
        const served = SERVED[turn % SERVED.length]!;
        const broken = { ...recording, id, bytes };
        assertRefused(await play(broken, served, false, [bytes.subarray(0, at)]), `${id} as ${served} ended at ${at}`);
      }
    }
  });

  test('every error reaches clients of every format as an error, without our key and our project', async () => {
    for (const recording of all.filter(({ status }) => status >= 400)) {
      for (const served of SERVED) {
        for (const stream of [false, true]) {
          const answer = await play(recording, served, stream, [recording.bytes]);
          assertRefused(answer, `${recording.id} as ${served}`);
          assert.ok(!/AIz[\w-]{10}|projects\/|DebugInfo/.test(answer.text), answer.text);
        }
      }
    }
  });
});

function play(
  recording: Recording,
  served: ServedForm,
  stream: boolean,
  pieces: readonly Buffer[],
  ending: Ending = 'close',
): Promise<PipelineAnswer> {
  const { status, headers } = recording;
  return playThrough({ served, kind: 'google', spoken: 'gemini', stream }, { status, headers, pieces, ending });
}

function check(served: ServedForm, answer: PipelineAnswer, recorded: RecordedAnswer, where: string): void {
  const seen = assertTold(served, answer, recorded, where);
  if (seen === undefined) return;
  if (!recorded.complete) assert.ok(saysSomething(recorded) || recorded.other, `${where}: opened for nothing`);
  assertRow(answer, seen, recorded, where);
}

/** The row, the client's usage and the service's counts agree, or the row says that they are an estimate. */
function assertRow(answer: PipelineAnswer, seen: ServedAnswer, recorded: RecordedAnswer, where: string): void {
  const { row } = answer;
  const counts = countsOfRow(answer);
  if (recorded.complete) assert.equal(row.estimated, recorded.usage === null, `${where}: marked as a guess`);
  if (!row.estimated) assert.deepEqual(counts, recorded.usage, `${where}: usage`);
  if (seen.usage !== null) assert.deepEqual(seen.usage, counts, `${where}: usage shown`);
  assert.equal(row.costNano, costOf(counts), `${where}: cost`);
  assert.equal(row.error === null, recorded.complete, `${where}: the row's end`);
}

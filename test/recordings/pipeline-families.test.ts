/**
 * Every recorded answer of Amazon Bedrock and Cohere, from its bytes through the whole pipeline to clients of every
 * served format: as it arrived, cut anywhere, and broken off anywhere.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FormatId } from '../../src/formats/conversation/conversation.ts';
import {
  assertServed,
  readServedWhole,
  SERVED_FORMS,
  type ServedAnswer,
  type ServedForm,
} from '../../src/testing/clients/served-answer.ts';
import { type PipelineAnswer, PRICES_NANO, playThrough } from '../../src/testing/laws/pipeline.ts';
import { corpusMissing, type Recording, recordings } from '../../src/testing/recordings/corpus.ts';
import { cutBytes, everyPosition, sampleOf, seeded } from '../../src/testing/recordings/cuts.ts';
import type { Ending, RecordedAnswer } from '../../src/testing/recordings/recorded-answer.ts';
import {
  awsBorders,
  cohereBilled,
  readCohereStream,
  readCohereWhole,
  readConverseStream,
  readConverseWhole,
} from '../../src/testing/recordings/recorded-families.ts';
import { assertRefused, assertTold, costOf, countsOfRow } from '../../src/testing/recordings/recorded-play.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
const CUTS = 150;
const BREAKS = 60;

const all = [
  ...recordings(['converse', 'converse-stream'], /^bedrock$/),
  // The vendor's older format has its answer at the top level.
  ...recordings(['chat'], /^cohere$/).filter(({ text }) => !/"generation_id"/.test(text)),
];
const streams = all.filter((one) => one.stream && one.status === 200);

describe('recorded traffic of Bedrock and Cohere', { skip: corpusMissing }, () => {
  test('the corpus holds streams of both', () => {
    for (const spoken of ['converse', 'cohere']) assert.ok(streams.some((one) => formOf(one) === spoken));
  });

  test('every stream reaches clients of every format with all of its content', async () => {
    for (const recording of streams) {
      for (const served of SERVED_FORMS) {
        check(served, await play(recording, served, true, [recording.bytes]), read(recording), recording, '');
      }
    }
  });

  test('every whole answer does, also when sent as a stream', async () => {
    for (const recording of all.filter((one) => !one.stream && one.status === 200)) {
      const whole = formOf(recording) === 'cohere' ? readCohereWhole : readConverseWhole;
      for (const served of SERVED_FORMS) {
        const answer = await play(recording, served, false, [recording.bytes]);
        assert.equal(answer.status, 200, answer.text);
        const seen = readServedWhole(served, answer.text);
        assertServed(served, seen, whole(recording.text), recording.id);
        assertRow(answer, seen, whole(recording.text), recording, recording.id);
        const streamed = await play(recording, served, true, [recording.bytes]);
        check(served, streamed, whole(recording.text), recording, 'streamed');
      }
    }
  });

  test('one byte at a time, and cut in two anywhere, the client gets the same text', async () => {
    for (const recording of streams) {
      const { bytes, id } = recording;
      const positions = exhaustive ? everyPosition(bytes) : sampleOf(hardPositions(recording), CUTS, id);
      for (const served of SERVED_FORMS) {
        const { text } = await play(recording, served, true, [bytes]);
        assert.equal((await play(recording, served, true, cutBytes(bytes, 1))).text, text, id);
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
      const positions = exhaustive
        ? everyPosition(bytes)
        : [...sampleOf(hardPositions(recording), BREAKS, id), ...seeded(id, BREAKS, bytes.length)];
      for (const [turn, at] of positions.entries()) {
        const served = SERVED_FORMS[turn % SERVED_FORMS.length]!;
        for (const ending of ['close', 'break'] as const) {
          const kept = bytes.subarray(0, at);
          const answer = await play(recording, served, true, [kept], ending);
          check(served, answer, read({ ...recording, bytes: kept }, ending), recording, `ended by ${ending} at ${at}`);
        }
      }
    }
  });

  test('every error reaches clients of every format as an error', async () => {
    const errors = all.filter(({ status }) => status >= 400);
    assert.ok(errors.length >= 3);
    for (const recording of errors) {
      for (const served of SERVED_FORMS) {
        for (const stream of [false, true]) {
          assertRefused(await play(recording, served, stream, [recording.bytes]), `${recording.id} as ${served}`);
        }
      }
    }
  });
});

function formOf({ provider }: Recording): FormatId {
  return provider === 'cohere' ? 'cohere' : 'converse';
}

function read(recording: Recording, ending: Ending = 'close'): RecordedAnswer {
  return formOf(recording) === 'cohere'
    ? readCohereStream(recording.bytes, ending)
    : readConverseStream(recording.bytes, ending);
}

/** Cuts inside lengths, checksums and headers, or inside the lines of an event. */
function hardPositions(recording: Recording): number[] {
  const { bytes } = recording;
  if (formOf(recording) === 'cohere') return everyPosition(bytes);
  const near = awsBorders(bytes).flatMap((at) => Array.from({ length: 32 }, (_, distance) => at - 16 + distance));
  return near.filter((at) => at > 0 && at < bytes.length);
}

function play(
  recording: Recording,
  served: ServedForm,
  stream: boolean,
  pieces: readonly Buffer[],
  ending: Ending = 'close',
): Promise<PipelineAnswer> {
  const { status, headers } = recording;
  const spoken = formOf(recording);
  const reasoning = served === 'chat' ? { reasoning: { effort: 'low' } } : {};
  return playThrough({ served, kind: spoken, spoken, stream, more: reasoning }, { status, headers, pieces, ending });
}

function check(
  served: ServedForm,
  answer: PipelineAnswer,
  recorded: RecordedAnswer,
  recording: Recording,
  how: string,
): void {
  const where = `${recording.id} as ${served} ${how}`;
  const seen = assertTold(served, answer, recorded, where);
  if (seen !== undefined) assertRow(answer, seen, recorded, recording, where);
}

/** The row, the client's usage and the service's counts agree; the cost equals the price of the charged units. */
function assertRow(
  answer: PipelineAnswer,
  seen: ServedAnswer,
  recorded: RecordedAnswer,
  recording: Recording,
  where: string,
): void {
  const { row } = answer;
  const counts = countsOfRow(answer);
  assert.equal(row.estimated, recorded.usage === null, `${where}: marked as a guess`);
  if (recorded.usage !== null) assert.deepEqual(counts, recorded.usage, `${where}: usage`);
  if (seen.usage !== null) assert.deepEqual(seen.usage, counts, `${where}: usage shown`);
  const billed = recorded.usage === null ? null : cohereBilled(recording.bytes);
  const cost =
    billed !== null
      ? BigInt(billed.input) * PRICES_NANO.prompt + BigInt(billed.output) * PRICES_NANO.completion
      : costOf(counts);
  assert.equal(row.costNano, cost, `${where}: cost`);
}

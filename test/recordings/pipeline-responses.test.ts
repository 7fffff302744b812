/**
 * Every recorded answer of a service that speaks the responses format, through the whole pipeline to clients of every
 * served format, and every recorded answer in the chat and messages formats to clients of the responses format: as it
 * arrived, cut anywhere, and broken off anywhere.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertServed,
  readServedWhole,
  SERVED_FORMS,
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
  sampleOf,
  seeded,
} from '../../src/testing/recordings/cuts.ts';
import {
  type Ending,
  lackingCount,
  type RecordedAnswer,
  readRecordedStream,
  readRecordedWhole,
  type SpokenForm,
} from '../../src/testing/recordings/recorded-answer.ts';
import { assertRefused, assertTold, costOf, countsOfRow } from '../../src/testing/recordings/recorded-play.ts';
import { readResponsesStream, readResponsesWhole } from '../../src/testing/recordings/recorded-responses.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
const CUTS = 12;
const BREAKS = 10;

const all = [
  ...recordings(['responses']),
  // Without recordings named chat or messages that have another format: Cohere's own, and the legacy text completion.
  ...recordings(['chat', 'messages'], /^(?!cohere$)/).filter(({ text }) => !/^\s*\{\s*"completion"/.test(text)),
];
const streams = all.filter((one) => one.stream && one.status === 200);
const whole = all.filter((one) => !one.stream && one.status === 200);

/** Formats in which a recording is served here; recordings.test.ts covers chat and messages among themselves. */
function formsFor({ api, id }: Recording): readonly ServedForm[] {
  // Shortened by hand, so its deltas differ from its end: relayed, it breaks the format itself.
  if (id.includes('shell-container')) return ['chat', 'messages'];
  return api === 'responses' ? SERVED_FORMS : ['responses'];
}

describe('recorded traffic to and from the responses format', { skip: corpusMissing }, () => {
  test('the corpus holds streams and whole answers of the format', () => {
    const own = all.filter(({ api }) => api === 'responses');
    assert.ok(own.filter(({ stream }) => stream).length >= 10 && own.filter(({ stream }) => !stream).length >= 8);
  });

  test('every stream reaches its clients with all of its content', async () => {
    for (const recording of streams) {
      for (const served of formsFor(recording)) {
        const answer = await play(recording, served, true, [recording.bytes]);
        check(served, answer, read(recording), `${recording.id} as ${served}`);
      }
    }
  });

  test('every whole answer reaches its clients with all of its content, also when sent as a stream', async () => {
    for (const recording of whole) {
      const recorded =
        recording.api === 'responses'
          ? readResponsesWhole(recording.text)
          : readRecordedWhole(recording.api as SpokenForm, recording.text);
      for (const served of formsFor(recording)) {
        const where = `${recording.id} as ${served}`;
        const answer = await play(recording, served, false, [recording.bytes]);
        if (!recorded.complete) assertRefused(answer, where);
        else {
          assert.equal(answer.status, 200, where);
          const seen = readServedWhole(served, answer.text);
          assertServed(served, seen, recorded, where);
          assertRow(answer, seen, recorded, where);
        }
        check(served, await play(recording, served, true, [recording.bytes]), recorded, `${where} streamed`);
      }
    }
  });

  test('one byte at a time, and cut in two anywhere, the client gets the same text', async () => {
    for (const recording of streams) {
      const { bytes, id } = recording;
      const positions = cutPositions(bytes, id);
      for (const served of formsFor(recording)) {
        const { text } = await play(recording, served, true, [bytes]);
        assert.equal((await play(recording, served, true, cutBytes(bytes, 1))).text, text, `${id} as ${served}`);
        for (const at of exhaustive ? positions : sampleOf(positions, CUTS, id)) {
          const cut = await play(recording, served, true, cutBytes(bytes, [at]));
          if (cut.text !== text) assert.equal(cut.text, text, `${id} as ${served} cut at ${at}`);
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
      for (const at of positions) {
        for (const served of formsFor(recording)) {
          for (const ending of ['close', 'break'] as const) {
            const kept = { ...recording, bytes: bytes.subarray(0, at) };
            const answer = await play(recording, served, true, [kept.bytes], ending);
            check(served, answer, read(kept, ending), `${id} as ${served} ended by ${ending} at ${at}`);
          }
        }
      }
    }
  });

  test('a whole answer that breaks off is an error, never a part of the answer', async () => {
    for (const recording of whole) {
      const { bytes, id } = recording;
      for (const at of seeded(id, BREAKS, bytes.length)) {
        if (bytes.subarray(at).toString().trim() === '') continue;
        for (const served of formsFor(recording)) {
          const answer = await play(recording, served, false, [bytes.subarray(0, at)], 'close');
          assertRefused(answer, `${id} as ${served} ended at ${at}`);
        }
      }
    }
  });

  test('every error body reaches its clients as an error', async () => {
    for (const recording of all.filter(({ status }) => status >= 400)) {
      for (const served of formsFor(recording)) {
        for (const stream of [false, true]) {
          assertRefused(await play(recording, served, stream, [recording.bytes]), `${recording.id} as ${served}`);
        }
      }
    }
  });

  test('a relayed answer keeps every item and every member of it', async () => {
    for (const recording of whole.filter(({ api }) => api === 'responses')) {
      const sent = JSON.parse(recording.text);
      if (sent.output === undefined || sent.status === 'failed') continue;
      const got = JSON.parse((await play(recording, 'responses', false, [recording.bytes])).text);
      assert.deepEqual(got.output, sent.output, recording.id);
      const ours = ['id', 'model', 'usage', 'metadata', 'user', 'safety_identifier', 'provider'];
      for (const key of Object.keys(sent)) {
        if (!ours.includes(key)) assert.deepEqual(got[key], sent[key], `${recording.id}: ${key}`);
      }
    }
  });

  test('a relayed stream keeps every event that does not belong to a response', async () => {
    for (const recording of streams.filter(({ api }) => api === 'responses')) {
      const inner = (text: string) =>
        [...text.matchAll(/^data: (\{.*\})$/gm)].flatMap(([, data]) => {
          const { sequence_number: _, ...event } = JSON.parse(data!);
          return event.response === undefined && event.type !== 'error' ? [event] : [];
        });
      const answer = await play(recording, 'responses', true, [recording.bytes]);
      const sent = recording.events.map(({ data }) => `data: ${data}`).join('\n');
      assert.deepEqual(inner(answer.text), inner(sent), recording.id);
    }
  });
});

function read({ api, bytes }: Recording, ending: Ending = 'close'): RecordedAnswer {
  return api === 'responses'
    ? readResponsesStream(bytes, ending)
    : readRecordedStream(api as SpokenForm, bytes, ending);
}

function play(
  { api, provider, status, headers }: Recording,
  served: ServedForm,
  stream: boolean,
  pieces: readonly Buffer[],
  ending: Ending = 'close',
): Promise<PipelineAnswer> {
  // A service that speaks the client's own format would get the request in it; these recordings are of its other
  // format.
  const kind = ['openai', 'azure', 'xai'].includes(provider) ? api : provider;
  const spoken = api as SpokenForm | 'responses';
  return playThrough({ served, kind, spoken, stream }, { status, headers, pieces, ending });
}

function check(served: ServedForm, answer: PipelineAnswer, recorded: RecordedAnswer, where: string): void {
  const seen = assertTold(served, answer, recorded, where);
  if (seen !== undefined) assertRow(answer, seen, recorded, where);
}

/** The row, the client's usage and the service's counts agree, or the row says that they are an estimate. */
function assertRow(answer: PipelineAnswer, seen: ServedAnswer, recorded: RecordedAnswer, where: string): void {
  const { row } = answer;
  const counts = countsOfRow(answer);
  const lacking = lackingCount(recorded);
  if (recorded.usage === null) assert.ok(row.estimated, `${where}: not marked as a guess`);
  else if (lacking) assert.ok(row.estimated && counts[lacking] > 0, `${where}: ${lacking} that nobody counted is free`);
  else if (recorded.complete) assert.deepEqual(counts, recorded.usage, `${where}: usage`);
  if (seen.usage !== null) assert.deepEqual(seen.usage, counts, `${where}: usage shown`);
  assert.equal(row.costNano, costOf(counts), `${where}: cost`);
  assert.equal(row.error === null, recorded.complete, `${where}: the row's end`);
}

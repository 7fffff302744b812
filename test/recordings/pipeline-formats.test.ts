/**
 * Every recorded response of Gemini, Bedrock, Cohere and services with the responses format, through the whole pipeline to clients
 * of every served format; and every recorded response in the chat and messages formats to clients of the responses format: as it
 * arrived, split anywhere, and truncated anywhere. `pipeline.test.ts` has chat and messages among themselves.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  assertServed,
  CLIENT_FORMATS,
  type ClientFormat,
  readServedWhole,
  type ServedAnswer,
} from '../../src/testing/clients/served-answer.ts';
import { type PipelineAnswer, PRICES_NANO, playThrough } from '../../src/testing/laws/pipeline.ts';
import { corpusMissing } from '../../src/testing/recordings/corpus.ts';
import {
  cutBytes,
  cutPositions,
  everyPosition,
  isBorder,
  sampleOf,
  seeded,
} from '../../src/testing/recordings/cuts.ts';
import {
  type RecordedConversation,
  type RecordedFormat,
  readRecording,
  recordedConversations,
} from '../../src/testing/recordings/readers.ts';
import {
  type Ending,
  lackingCount,
  type RecordedAnswer,
  saysSomething,
} from '../../src/testing/recordings/recorded-answer.ts';
import { cohereBilled } from '../../src/testing/recordings/recorded-cohere.ts';
import { awsBorders } from '../../src/testing/recordings/recorded-converse.ts';
import { assertRefused, assertTold, costOf, countsOfRow } from '../../src/testing/recordings/recorded-play.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';

interface Sample {
  served: readonly ClientFormat[];
  /** Positions of each stream at which it is split, for each served format. */
  cuts: number;
  /** Positions at which it is truncated, near borders and elsewhere each; the served formats take turns. */
  ends: number;
}

const SAMPLES: Readonly<Record<RecordedFormat, Sample>> = {
  chat: { served: ['responses', 'gemini'], cuts: 3, ends: 4 },
  messages: { served: ['responses', 'gemini'], cuts: 3, ends: 4 },
  responses: { served: CLIENT_FORMATS, cuts: 6, ends: 12 },
  gemini: { served: CLIENT_FORMATS, cuts: 12, ends: 9 },
  converse: { served: CLIENT_FORMATS, cuts: 38, ends: 24 },
  cohere: { served: CLIENT_FORMATS, cuts: 38, ends: 24 },
};
const FORMATS = Object.keys(SAMPLES) as RecordedFormat[];

const all = recordedConversations(...FORMATS);
const errors = all.filter(({ status }) => status >= 400);
const streams = all.filter((one) => one.stream && one.status === 200);
const whole = all.filter((one) => !one.stream && one.status === 200);

function servedOf({ format, id }: RecordedConversation): readonly ClientFormat[] {
  // Shortened by hand, so its deltas differ from its end: relayed, it breaks the format itself.
  return id.includes('shell-container') ? ['chat', 'messages'] : SAMPLES[format].served;
}

describe('recorded traffic of every format', { skip: corpusMissing }, () => {
  test('the corpus holds streams, whole responses and errors of every format', () => {
    for (const format of FORMATS) {
      const count = (list: readonly RecordedConversation[]) => list.filter((one) => one.format === format).length;
      assert.ok(count(streams) > 0 && (count(whole) > 0 || format === 'converse'), format);
    }
    for (const provider of ['google', 'vertex', 'bedrock', 'cohere', 'openai', 'anthropic']) {
      assert.ok(
        errors.some((one) => one.provider === provider),
        provider,
      );
    }
  });

  test('every stream reaches its clients with all of its content', async () => {
    for (const recording of streams) {
      for (const served of servedOf(recording)) {
        const answer = await play(recording, served, true, [recording.bytes]);
        check(served, answer, recording, readRecording(recording), '');
      }
    }
  });

  test('every whole response reaches its clients with all of its content, also when sent as a stream', async () => {
    for (const recording of whole) {
      const recorded = readRecording(recording);
      for (const served of servedOf(recording)) {
        const where = `${recording.id} as ${served}`;
        const answer = await play(recording, served, false, [recording.bytes]);
        if (!recorded.complete) assertRefused(answer, where);
        else {
          assert.equal(answer.status, 200, `${where}: ${answer.text}`);
          const seen = readServedWhole(served, answer.text);
          assertServed(served, seen, recorded, where);
          assertRow(answer, seen, recording, recorded, where);
        }
        check(served, await play(recording, served, true, [recording.bytes]), recording, recorded, 'streamed');
      }
    }
  });

  test('one byte at a time, with other line ends, and split anywhere, the client gets the same text', async () => {
    for (const recording of streams) {
      const { bytes, id, format } = recording;
      const every = format === 'converse' ? nearBorders(recording) : cutPositions(bytes, id);
      const lines = Buffer.from(bytes.toString().replaceAll('\r\n', '\n'));
      for (const served of servedOf(recording)) {
        const { text } = await play(recording, served, true, [bytes]);
        const same = async (pieces: readonly Buffer[], how: string) => {
          const answer = await play(recording, served, true, pieces);
          if (answer.text !== text) assert.equal(answer.text, text, `${id} as ${served} ${how}`);
        };
        await same(cutBytes(bytes, 1), 'byte by byte');
        if (format !== 'converse') await same([lines], 'with LF');
        for (const at of exhaustive ? every : sampleOf(every, SAMPLES[format].cuts, id)) {
          await same(cutBytes(bytes, [at]), `split at ${at}`);
        }
      }
    }
  });

  test('a stream that is truncated anywhere keeps what was seen and ends in one error', async () => {
    for (const recording of streams) {
      const { bytes, id, format } = recording;
      const formats = servedOf(recording);
      const { ends } = SAMPLES[format];
      const positions = exhaustive
        ? cutPositions(bytes, id)
        : [...sampleOf(nearBorders(recording), ends, id), ...seeded(`${id} end`, ends, bytes.length)];
      for (const [turn, at] of positions.entries()) {
        const served = formats[turn % formats.length]!;
        for (const ending of ['close', 'break'] as const) {
          const kept = bytes.subarray(0, at);
          const answer = await play(recording, served, true, [kept], ending);
          const recorded = readRecording(recording, kept, ending);
          check(served, answer, { ...recording, bytes: kept }, recorded, `ended by ${ending} at ${at}`);
        }
      }
    }
  });

  test('a whole response that is truncated is an error, never a part of the response', async () => {
    for (const recording of whole) {
      const { bytes, id } = recording;
      for (const at of seeded(id, 10, bytes.length)) {
        if (bytes.subarray(at).toString().trim() === '') continue;
        for (const served of servedOf(recording)) {
          const answer = await play(recording, served, false, [bytes.subarray(0, at)]);
          assertRefused(answer, `${id} as ${served} ended at ${at}`);
        }
      }
    }
  });

  test('every error reaches clients of every format as an error, without a key or a project', async () => {
    for (const recording of errors) {
      for (const served of servedOf(recording)) {
        for (const stream of [false, true]) {
          const answer = await play(recording, served, stream, [recording.bytes]);
          assertRefused(answer, `${recording.id} as ${served}`);
          if (recording.format === 'gemini')
            assert.ok(!/AIz[\w-]{10}|projects\/|DebugInfo/.test(answer.text), answer.text);
        }
      }
    }
  });

  test('a relayed answer keeps every item and every member of it', async () => {
    for (const recording of whole.filter(({ format }) => format === 'responses')) {
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
    for (const recording of streams.filter(({ format }) => format === 'responses')) {
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

/** Positions near the borders of events, inside lengths, checksums and headers too. */
function nearBorders({ bytes, format }: RecordedConversation): number[] {
  if (format !== 'converse') return everyPosition(bytes).filter((at) => isBorder(bytes, at));
  const near = awsBorders(bytes).flatMap((at) => Array.from({ length: 32 }, (_, distance) => at - 16 + distance));
  return near.filter((at) => at > 0 && at < bytes.length);
}

function play(
  { format, provider, status, headers }: RecordedConversation,
  served: ClientFormat,
  stream: boolean,
  pieces: readonly Buffer[],
  ending: Ending = 'close',
): Promise<PipelineAnswer> {
  // Services with several formats would get the request in the client's; a recording is of one format.
  const kind =
    format === 'gemini'
      ? 'google'
      : ['converse', 'cohere'].includes(format) || ['openai', 'azure', 'xai'].includes(provider)
        ? format
        : provider;
  const more = ['converse', 'cohere'].includes(format) && served === 'chat' ? { reasoning: { effort: 'low' } } : {};
  return playThrough({ served, kind, spoken: format, stream, more }, { status, headers, pieces, ending });
}

function check(
  served: ClientFormat,
  answer: PipelineAnswer,
  recording: RecordedConversation,
  recorded: RecordedAnswer,
  how: string,
): void {
  const where = `${recording.id} as ${served} ${how}`;
  const seen = assertTold(served, answer, recorded, where);
  if (seen === undefined) return;
  if (!recorded.complete) assert.ok(saysSomething(recorded) || recorded.other, `${where}: opened for nothing`);
  assertRow(answer, seen, recording, recorded, where);
}

/** The row, the client's usage and the service's counts agree, or the row says that they are an estimate. */
function assertRow(
  answer: PipelineAnswer,
  seen: ServedAnswer,
  recording: RecordedConversation,
  recorded: RecordedAnswer,
  where: string,
): void {
  const { row } = answer;
  const counts = countsOfRow(answer);
  const lacking = lackingCount(recorded);
  if (recorded.usage === null) assert.ok(row.estimated, `${where}: not marked as a guess`);
  else if (lacking) assert.ok(row.estimated && counts[lacking] > 0, `${where}: ${lacking} that nobody counted is free`);
  else if (recorded.complete || !row.estimated) {
    assert.equal(row.estimated, false, `${where}: marked as a guess`);
    assert.deepEqual(counts, recorded.usage, `${where}: usage`);
  }
  if (seen.usage !== null) {
    // A service may claim more reasoning than output, which a format that adds them up cannot say.
    const most = seen.usage.reasoning === counts.output ? { reasoning: Math.min(counts.reasoning, counts.output) } : {};
    assert.deepEqual(seen.usage, { ...counts, ...most }, `${where}: usage shown`);
  }
  const billed = recording.format === 'cohere' && recorded.usage !== null ? cohereBilled(recording.bytes) : null;
  const cost =
    billed === null
      ? costOf(counts)
      : BigInt(billed.input) * PRICES_NANO.prompt + BigInt(billed.output) * PRICES_NANO.completion;
  assert.equal(row.costNano, cost, `${where}: cost`);
  assert.equal(row.error === null, recorded.complete, `${where}: the row's end`);
}

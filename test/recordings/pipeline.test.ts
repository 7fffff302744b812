/**
 * Every recorded answer of a service, from its bytes through the whole pipeline to the text of a client of either
 * format, read there by a strict reader: as it arrived, cut anywhere, and broken off anywhere. The expected content is
 * read from the recording by the tests' own code.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EventReader } from '../../src/http/sse.ts';
import {
  assertContent,
  assertServed,
  type ClientFormat,
  readServedStream,
  readServedWhole,
  type ServedAnswer,
} from '../../src/testing/clients/served-answer.ts';
import { type PipelineAnswer, playThrough } from '../../src/testing/laws/pipeline.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { corpusMissing } from '../../src/testing/recordings/corpus.ts';
import {
  cutBytes,
  cutPositions,
  everyPosition,
  isBorder,
  SHORT_STREAM_BYTES,
  sampleOf,
  seeded,
} from '../../src/testing/recordings/cuts.ts';
import {
  type RecordedConversation,
  readRecording,
  recordedConversations,
} from '../../src/testing/recordings/readers.ts';
import {
  type Ending,
  lackingCount,
  type RecordedAnswer,
  saysSomething,
} from '../../src/testing/recordings/recorded-answer.ts';
import { assertRefused, costOf, countsOfRow } from '../../src/testing/recordings/recorded-play.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
const CUTS = samples(8);
const TRUNCATIONS = samples(8);

const all = recordedConversations('chat', 'messages');
const streams = all.filter((one) => one.stream && one.status === 200);
const whole = all.filter((one) => !one.stream && one.status === 200);
const SERVED = ['chat', 'messages'] as const;
const WAYS_TO_BREAK = SERVED.flatMap((served) =>
  (['close', 'break'] as const).map((ending): [ClientFormat, Ending] => [served, ending]),
);
const USAGES = ['chunk', 'finish', 'none'] as const;
type Usage = (typeof USAGES)[number];

const counted = { exchanges: 0, cuts: 0, truncations: 0 };

describe('recorded traffic', { skip: corpusMissing }, () => {
  test('the corpus holds streams and whole answers of many services', () => {
    assert.ok(streams.length >= 70 && whole.length >= 30, `${streams.length} streams, ${whole.length} whole`);
  });

  test('every stream reaches clients of both formats with all of its content', async () => {
    for (const recording of streams) {
      const recorded = readRecording(recording);
      for (const served of SERVED) {
        for (const usage of served === 'chat' ? USAGES : (['finish'] as const)) {
          const answer = await streamed(recording, served, [recording.bytes], 'close', usage);
          check(served, answer, recorded, usage, `${recording.id} as ${served} ${usage}`);
        }
      }
    }
  });

  test('every whole answer reaches clients of both formats with all of its content, also as a stream', async () => {
    for (const recording of whole) {
      const recorded = readRecording(recording);
      for (const served of SERVED) {
        const where = `${recording.id} as ${served}`;
        const answer = await play(recording, served, false, [recording.bytes]);
        if (!recorded.complete) assertRefused(answer, where);
        else {
          assert.equal(answer.status, 200, where);
          const read = readServedWhole(served, answer.text);
          assertServed(served, read, recorded, where);
          assertRow(answer, read, recorded, where);
        }
        check(served, await streamed(recording, served, [recording.bytes]), recorded, 'finish', `${where} streamed`);
      }
    }
  });

  test('one byte at a time gives the same text, to the byte', async () => {
    for (const recording of streams) {
      for (const served of SERVED) {
        const answer = await streamed(recording, served, [recording.bytes]);
        const slow = await streamed(recording, served, cutBytes(recording.bytes, 1));
        assert.equal(slow.text, answer.text, `${recording.id} as ${served}`);
      }
    }
  });

  test('a cut anywhere does not change the events of the stream', () => {
    for (const { id, bytes } of streams) assertUncut(bytes, id);
  });

  test('a cut anywhere does not change the events when lines end in CR LF', () => {
    for (const { id, bytes } of streams.filter((one) => one.bytes.length <= SHORT_STREAM_BYTES / 2)) {
      const windows = Buffer.from(bytes.toString().replaceAll(/\r?\n/g, '\r\n'));
      assert.equal(eventsOf([windows]), eventsOf([bytes]), id);
      assertUncut(windows, id);
    }
  });

  test('a cut anywhere does not change the text of the client', async () => {
    for (const recording of streams) {
      const { bytes } = recording;
      const positions = cutPositions(bytes, recording.id);
      const singles =
        exhaustive && bytes.length <= SHORT_STREAM_BYTES ? positions : sampleOf(positions, CUTS, recording.id);
      const runs = singles.map((at) => [at]);
      // In a long stream many distant cuts share a run, and every position is covered.
      if (exhaustive && bytes.length > SHORT_STREAM_BYTES) runs.push(...spread(positions, 64));
      for (const served of SERVED) {
        const { text } = await streamed(recording, served, [bytes]);
        for (const cuts of runs) {
          const answer = await streamed(recording, served, cutBytes(bytes, cuts));
          if (answer.text !== text) assert.equal(answer.text, text, `${recording.id} as ${served} cut at ${cuts}`);
          counted.cuts += cuts.length;
        }
      }
    }
  });

  test('a stream that breaks off anywhere keeps what was seen and ends in one error', async () => {
    for (const recording of streams) {
      const { bytes } = recording;
      const positions = exhaustive
        ? cutPositions(bytes, recording.id)
        : [
            ...sampleOf(
              everyPosition(bytes).filter((at) => isBorder(bytes, at)),
              Math.ceil(TRUNCATIONS / 4),
              recording.id,
            ),
            ...seeded(`${recording.id} end`, TRUNCATIONS, bytes.length),
          ];
      // In a long stream each position gets one format and one ending, in turn, when all positions are tried.
      const turns = exhaustive && bytes.length > SHORT_STREAM_BYTES;
      for (const [turn, at] of positions.entries()) {
        for (const [way, [served, ending]] of WAYS_TO_BREAK.entries()) {
          if (turns && turn % WAYS_TO_BREAK.length !== way) continue;
          const kept = bytes.subarray(0, at);
          const recorded = readRecording(recording, kept, ending);
          const answer = await streamed(recording, served, [kept], ending);
          check(served, answer, recorded, 'finish', `${recording.id} as ${served} ended by ${ending} at ${at}`);
          counted.truncations += 1;
        }
      }
    }
  });

  test('a whole answer that breaks off is an error, never a part of the answer', async () => {
    for (const recording of whole) {
      const { bytes, id } = recording;
      for (const at of seeded(id, exhaustive ? 500 : TRUNCATIONS, bytes.length)) {
        // White space after the answer may be missing.
        if (bytes.subarray(at).toString().trim() === '') continue;
        for (const [served, ending] of WAYS_TO_BREAK) {
          const answer = await play(recording, served, false, [bytes.subarray(0, at)], ending);
          assertRefused(answer, `${id} as ${served} ended by ${ending} at ${at}`);
          counted.truncations += 1;
        }
      }
    }
  });

  test('every error body reaches clients of both formats as an error, with its retry time', async () => {
    for (const recording of all.filter(({ status }) => status >= 400)) {
      for (const served of SERVED) {
        for (const stream of [false, true]) {
          assertRefused(await play(recording, served, stream, [recording.bytes]), `${recording.id} as ${served}`);
        }
      }
    }
  });

  test('what was tried', (t) => {
    t.diagnostic(`${all.length} recordings: ${JSON.stringify(counted)}`);
  });
});

async function play(
  recording: RecordedConversation,
  served: ClientFormat,
  stream: boolean,
  pieces: readonly Buffer[],
  ending: Ending = 'close',
  usage: Usage = 'finish',
): Promise<PipelineAnswer> {
  counted.exchanges += 1;
  const { provider: kind, format, status, headers } = recording;
  const more = usage === 'finish' ? {} : { stream_options: { include_usage: usage === 'chunk' } };
  return playThrough({ served, kind, spoken: format, stream, more }, { status, headers, pieces, ending });
}

function streamed(
  recording: RecordedConversation,
  served: ClientFormat,
  pieces: readonly Buffer[],
  ending: Ending = 'close',
  usage: Usage = 'finish',
): Promise<PipelineAnswer> {
  return play(recording, served, true, pieces, ending, usage);
}

/** The whole output may be the beginning of a tag that precedes reasoning, so it is not shown yet. */
function mayBeginThinking({ choices }: RecordedAnswer): boolean {
  return choices.every(
    ({ text, reasoning, refusal, calls }) =>
      reasoning + refusal === '' && calls.length === 0 && '<think>'.startsWith(text.trimStart()),
  );
}

/** Fails unless the client received what the recording says, to its end. */
function check(
  served: ClientFormat,
  answer: PipelineAnswer,
  recorded: RecordedAnswer,
  usage: Usage,
  where: string,
): void {
  if (!answer.streamed) {
    // Nothing was visible, so another endpoint could have been tried, and the status shows the failure.
    const seen = saysSomething(recorded) && !mayBeginThinking(recorded);
    assert.ok(!recorded.complete && !seen, `${where}: ${answer.status} ${answer.text}`);
    assertRefused(answer, where);
    return;
  }
  assert.ok(answer.ended, `${where}: the stream stays open`);
  const read = readServedStream(served, answer.text, usage);
  if (recorded.complete) assertServed(served, read, recorded, where);
  else {
    assert.ok(read.error !== null, `${where}: ends as if it were complete`);
    assert.ok(saysSomething(recorded) || recorded.other, `${where}: opened for nothing`);
    assertContent(served, read, recorded, where);
  }
  assertRow(answer, read, recorded, where);
}

/** The row, the client's usage and the service's counts agree, or the row says that they are an estimate. */
function assertRow(answer: PipelineAnswer, read: ServedAnswer, recorded: RecordedAnswer, where: string): void {
  const { row } = answer;
  assert.ok(row.usage !== null, where);
  const counts = countsOfRow(answer);
  const lacking = lackingCount(recorded);
  if (lacking) assert.ok(row.estimated && counts[lacking] > 0, `${where}: ${lacking} that nobody counted is free`);
  const told = recorded.usage !== null && lacking ? { ...recorded.usage, [lacking]: counts[lacking] } : recorded.usage;
  const behind = recorded.uncounted > 0 || (row.estimated && lacking === undefined);
  const early = !recorded.complete && told !== null && lacking !== 'output' && behind;
  if (!lacking) assert.equal(row.estimated, told === null || early, `${where}: marked as a guess`);
  assert.ok(!early || recorded.uncounted > 0 || recorded.other, `${where}: a guess although all was counted`);
  if (early) {
    // Output after the last report is estimated from its size; the rest is as reported.
    assert.ok(counts.output > told.output, `${where}: what came behind the count is free`);
    assert.deepEqual({ ...counts, output: 0 }, { ...told, output: 0 }, `${where}: usage`);
  } else if (told !== null) assert.deepEqual(counts, told, `${where}: usage`);
  if (read.usage !== null) assert.deepEqual(read.usage, counts, `${where}: usage shown`);
  const cost = costOf(counts);
  assert.equal(row.costNano, cost, `${where}: cost`);
  if (read.usage !== null) assert.equal(read.cost, Number(cost) / 1e9, `${where}: cost shown`);
  assert.equal(row.error === null, recorded.complete, `${where}: the row's end`);
}

/** Fails unless every cut that has to be tried leaves the events unchanged. */
function assertUncut(bytes: Buffer, id: string): void {
  const expected = eventsOf([bytes]);
  const borders = everyPosition(bytes).filter((at) => isBorder(bytes, at));
  for (const at of exhaustive ? everyPosition(bytes) : cutPositions(bytes, id)) {
    const [from, to] = window(borders, at, bytes.length);
    const cut = eventsOf([bytes.subarray(from, at), bytes.subarray(at, to)]);
    const same = from === 0 && to === bytes.length ? expected : eventsOf([bytes.subarray(from, to)]);
    if (cut !== same) assert.equal(cut, same, `${id} cut at ${at}`);
  }
  // Around each border an event reads as it does in the whole stream, so the windows above are representative.
  assert.equal(eventsOf(cutBytes(bytes, borders)), expected, id);
}

/** The events as one text, for comparison. */
function eventsOf(pieces: readonly Buffer[]): string {
  let seen = '';
  const reader = new EventReader((name, data) => {
    seen += `${name}\u0000${data}\u0001`;
  });
  for (const piece of pieces) reader.push(piece);
  const rest = reader.end();
  return `${seen}${JSON.stringify(rest)}${reader.stray}`;
}

/** The window from an event before the position to one after it: a border leaves no state in the reader. */
function window(borders: readonly number[], at: number, length: number): [number, number] {
  if (length <= SHORT_STREAM_BYTES) return [0, length];
  let low = 0;
  let high = borders.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (borders[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return [borders[low - 2] ?? 0, borders[low + 2] ?? length];
}

/** Positions in groups whose members are `stride` positions apart. */
function spread(positions: readonly number[], stride: number): number[][] {
  return Array.from({ length: stride }, (_, first) => positions.filter((_, at) => at % stride === first));
}

/** What tests of recorded traffic ask of every answer that the pipeline gave, whichever family the recording is of. */
import assert from 'node:assert/strict';
import {
  assertContent,
  assertServed,
  type ClientFormat,
  readServedStream,
  type ServedAnswer,
} from '../clients/served-answer.ts';
import { type PipelineAnswer, PRICES_NANO } from '../laws/pipeline.ts';
import { type Counts, type RecordedAnswer, saysSomething } from './recorded-answer.ts';

/**
 * Fails unless the client received what the recording says, to its end.
 * @returns what the client has seen; undefined if it rightly saw nothing
 */
export function assertTold(
  served: ClientFormat,
  answer: PipelineAnswer,
  recorded: RecordedAnswer,
  where: string,
): ServedAnswer | undefined {
  if (!answer.streamed) {
    assert.ok(!recorded.complete && !saysSomething(recorded), `${where}: ${answer.status} ${answer.text}`);
    assertRefused(answer, where);
    return undefined;
  }
  assert.ok(answer.ended, `${where}: the stream stays open`);
  const seen = readServedStream(served, answer.text, 'finish');
  if (recorded.complete) assertServed(served, seen, recorded, where);
  else {
    assert.ok(seen.error !== null, `${where}: ends as if it were complete`);
    assertContent(served, seen, recorded, where);
  }
  return seen;
}

export function assertRefused(answer: PipelineAnswer, where: string): void {
  assert.ok(answer.status >= 400 && !answer.streamed, `${where}: ${answer.status}`);
  assert.equal(typeof JSON.parse(answer.text).error.message, 'string', where);
  assert.equal(answer.row.status, answer.status, where);
  assert.equal(answer.row.finishReason, 'error', where);
}

/** The counts of the row, by the names of recordings. */
export function countsOfRow({ row }: PipelineAnswer): Counts {
  const usage = row.usage!;
  return {
    input: usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h,
    cacheRead: usage.cacheRead,
    cacheWrite: usage.cacheWrite5m + usage.cacheWrite1h,
    output: usage.output,
    reasoning: usage.reasoning,
  };
}

/** What the pipeline's model charges for them, in nano-dollars. */
export function costOf({ input, cacheRead, cacheWrite, output }: Counts): bigint {
  return (
    BigInt(input - cacheRead - cacheWrite) * PRICES_NANO.prompt +
    BigInt(cacheRead) * PRICES_NANO.cacheRead +
    BigInt(cacheWrite) * PRICES_NANO.cacheWrite +
    BigInt(output) * PRICES_NANO.completion
  );
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { JsonDocument } from '../base/json.ts';
import { readInSteps } from './large-body.ts';

const LIMITS = { maxDepth: 16 };
const VALUE = { messages: Array.from({ length: 500 }, (_, index) => ({ content: `${index} – ${'x'.repeat(2000)}` })) };

class Reading {
  closed = false;
  document: JsonDocument | undefined;
  failure: unknown;

  documentRead(document: JsonDocument): void {
    this.document = document;
  }

  fail(thrown: unknown): void {
    this.failure = thrown;
  }
}

async function turnsUntil(over: () => boolean): Promise<number> {
  for (let turns = 0; turns < 1000; turns += 1) {
    if (over()) return turns;
    await turn();
  }
  throw new Error('it never ends');
}

test('a large body takes several turns of the event loop, in which others are served', async () => {
  const reading = new Reading();
  readInSteps(Buffer.from(JSON.stringify(VALUE)), LIMITS, reading);
  const turns = await turnsUntil(() => reading.document !== undefined);
  assert.ok(turns >= 10, `${turns} turns for a megabyte`);
  assert.deepEqual(reading.document!.value, VALUE);
});

test('a fault that is found late is reported like one at the start', async () => {
  const reading = new Reading();
  readInSteps(Buffer.from(JSON.stringify(VALUE).slice(0, -1)), LIMITS, reading);
  await turnsUntil(() => reading.failure !== undefined);
  assert.match(String(reading.failure), /the body is not valid JSON/);
});

test('nothing more is read for a client that has left', async () => {
  const reading = new Reading();
  readInSteps(Buffer.from(JSON.stringify(VALUE)), LIMITS, reading);
  reading.closed = true;
  for (let turns = 0; turns < 100; turns += 1) await turn();
  assert.equal(reading.document, undefined);
  assert.equal(reading.failure, undefined);
});

import assert from 'node:assert/strict';
import test from 'node:test';
import { silentLog } from '../../base/log.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import { pdfOf } from '../../testing/documents/pdf.ts';
import { PdfReader } from './pdf-reader.ts';

test('the text of each page is read, one file after the other, and a broken file harms no other', async (t) => {
  const reader = new PdfReader({ clock: new TestClock(), log: silentLog });
  t.after(() => reader.close());
  const [two, broken, cut, one] = await Promise.all([
    reader.read(pdfOf('first page', 'second page')),
    reader.read(Buffer.from('%PDF-1.4 nothing')),
    reader.read(pdfOf('cut').subarray(0, 60)),
    reader.read(pdfOf('alone')),
  ]);
  assert.deepEqual(two, { pages: ['first page', 'second page'] });
  assert.deepEqual([broken, cut], [{ fault: 'unreadable' }, { fault: 'unreadable' }]);
  assert.deepEqual(one, { pages: ['alone'] });
});

test('a file that takes too long ends the thread, the next one gets a new thread, and idleness ends it', async (t) => {
  const clock = new TestClock();
  const reader = new PdfReader({ clock, log: silentLog });
  t.after(() => reader.close());
  const slow = reader.read(pdfOf('slow'));
  const next = reader.read(pdfOf('next'));
  clock.advance(20_000);
  assert.deepEqual(await slow, { fault: 'slow' });
  assert.deepEqual(await next, { pages: ['next'] });
  assert.equal(reader.running, true);
  clock.advance(60_000);
  assert.equal(reader.running, false);
});

test('only so many files wait, and those that wait at the end are not read', async () => {
  const reader = new PdfReader({ clock: new TestClock(), log: silentLog });
  const waiting = Array.from({ length: 16 }, () => reader.read(pdfOf('x')));
  assert.deepEqual(await reader.read(pdfOf('x')), { fault: 'busy' });
  await reader.close();
  assert.deepEqual(
    new Set((await Promise.all(waiting)).map((read) => 'fault' in read && read.fault)),
    new Set(['slow']),
  );
});

import assert from 'node:assert/strict';
import test from 'node:test';
import { silentLog } from '../../base/log.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import { docxOf } from '../../testing/documents/docx.ts';
import { DocxReader } from './docx-reader.ts';

test('the paragraphs of a document are read, and what cannot be read or unpacks to too much harms no other', async (t) => {
  const reader = new DocxReader({ clock: new TestClock(), log: silentLog });
  t.after(() => reader.close());
  const bomb = Buffer.alloc(65 * 1024 * 1024);
  const whole = docxOf(['First paragraph', 'Größe &amp; Gewicht']);
  const shifted = Buffer.concat([Buffer.from('text before'), whole]);
  const read = await Promise.all(
    [whole, docxOf(['text'], { 'word/media/a.png': bomb }), whole.subarray(0, 300), shifted, Buffer.from('PK')].map(
      (bytes) => reader.read(bytes),
    ),
  );
  assert.deepEqual(read, [
    { text: 'First paragraph\n\nGröße & Gewicht' },
    { fault: 'length' },
    { fault: 'unreadable' },
    { fault: 'unreadable' },
    { fault: 'unreadable' },
  ]);
});

/**
 * A process that the spend tests kill: writes intents and settled rows into a journal forever, and prints each entry after
 * writing it, `begun <id>` or `settled <id>`, straight into the pipe.
 */
import { writeSync } from 'node:fs';
import { systemClock as clock } from '../../src/base/clock.ts';
import { Journal } from '../../src/spend/journal.ts';
import { encodeIntent, encodeSettled } from '../../src/spend/record.ts';
import { encodeRow } from '../../src/spend/row.ts';
import { sampleAccepted, sampleAttempt, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';

const [directory = '', prefix = ''] = process.argv.slice(2);
const journal = new Journal({ directory, clock, ballastBytes: 1, segmentBytes: 20_000 });

for (let number = 0; ; number++) {
  const accepted = sampleAccepted(`${prefix}-${number}`);
  const intent = { accepted, attempt: sampleAttempt(), held: [] };
  journal.append('I', encodeIntent(intent));
  writeSync(1, `begun ${accepted.id}\n`);
  // Every third is still open when the next one begins, and for ever.
  if (number % 3 === 0) continue;
  const row = encodeRow(sampleGeneration(accepted));
  journal.appendAnyway('S', encodeSettled({ id: accepted.id, row, taken: [] }));
  writeSync(1, `settled ${accepted.id}\n`);
}

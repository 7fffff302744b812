import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as nodeFiles from 'node:fs';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../base/clock.ts';
import { TestClock, until } from '../testing/clock/clock.ts';
import { Journal, type JournalFiles, type JournalOptions } from './journal.ts';
import { RecordBuffer } from './record-buffer.ts';
import { type ScannedRecord, scanSegment } from './scan.ts';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'journal-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function journalIn(directory: string, change: Partial<JournalOptions> = {}): Journal {
  return new Journal({ directory, clock: systemClock, ballastBytes: 4_096, ...change });
}

function logs(directory: string): string[] {
  return readdirSync(directory).filter((name) => name.endsWith('.log'));
}

async function records(directory: string): Promise<ScannedRecord[]> {
  const found: ScannedRecord[] = [];
  for (const name of logs(directory).sort()) {
    for await (const chunk of scanSegment(join(directory, name))) found.push(...chunk.records);
  }
  return found;
}

function recordsOf(...jsons: string[]): RecordBuffer {
  const records = new RecordBuffer();
  for (const json of jsons) records.add('I', json);
  return records;
}

const texts = (found: ScannedRecord[]) => found.map((record) => record.json);

test('a record is in the file when append returns', async (t) => {
  const directory = folder(t);
  const journal = journalIn(directory);
  journal.append('I', '["ä",1]');
  assert.match(readFileSync(join(directory, '00000001.log'), 'utf8'), /^I[0-9a-f]{8} \["ä",1\]\n$/);
  await journal.close(true);
  assert.deepEqual(readdirSync(directory), []);
});

test('a journal cut at any byte yields every whole record before the cut', async (t) => {
  const directory = folder(t);
  const journal = journalIn(directory);
  const written = ['["a"]', '["bé",2]', '["ccc"]'];
  const ends = written.map((json) => journal.append('I', json).end);
  await journal.close(false);
  const path = join(directory, '00000001.log');
  const whole = readFileSync(path);
  for (let cut = 0; cut <= whole.length; cut++) {
    writeFileSync(path, whole.subarray(0, cut));
    const expected = written.filter((_, index) => ends[index]! <= cut);
    assert.deepEqual(texts(await records(directory)), expected, `cut at ${cut}`);
  }
});

test("a record longer than the reader's chunk, and one longer than the write buffer, come back whole", async (t) => {
  const directory = folder(t);
  const journal = journalIn(directory);
  const written = [`["${'é'.repeat(200_000)}"]`, '["b"]', `["${'x'.repeat(70_000)}"]`];
  for (const json of written) journal.append('I', json);
  await journal.close(false);
  assert.deepEqual(texts(await records(directory)), written);
});

test('segments rotate, and one is deleted when none of its records is used', async (t) => {
  const directory = folder(t);
  const journal = journalIn(directory, { segmentBytes: 100 });
  const first = journal.append('I', `["${'a'.repeat(80)}"]`);
  const second = journal.append('I', `["${'b'.repeat(80)}"]`);
  const third = journal.append('I', `["${'c'.repeat(80)}"]`);
  assert.equal(logs(directory).length, 3);
  await journal.sync();
  journal.release(second);
  assert.deepEqual(logs(directory), ['00000001.log', '00000003.log']);
  journal.release(first);
  journal.release(third);
  assert.deepEqual(logs(directory), ['00000003.log']);
  await journal.close(true);
});

test('everything written within 50 ms is synced together', async (t) => {
  const clock = new TestClock();
  let syncs = 0;
  const files: JournalFiles = {
    ...nodeFiles,
    fdatasync(descriptor, done) {
      syncs += 1;
      nodeFiles.fdatasync(descriptor, done);
    },
  };
  const journal = journalIn(folder(t), { clock, files });
  for (let n = 0; n < 100; n++) journal.append('I', '[]');
  clock.advance(49);
  assert.equal(syncs, 0);
  clock.advance(1);
  assert.equal(syncs, 1);
  journal.append('I', '[]');
  await until(() => clock.timers > 0, 'the next sync is due');
  clock.advance(50);
  assert.equal(syncs, 2);
  await journal.close(true);
});

/** A disk with a given amount of free space. */
class SmallDisk implements JournalFiles {
  room: number;
  failSync = false;
  readonly #sizes = new Map<number, number>();
  readonly #paths = new Map<string, number>();

  constructor(room: number) {
    this.room = room;
  }

  openSync(path: string, flags: string): number {
    const descriptor = nodeFiles.openSync(path, flags);
    this.#paths.set(path, descriptor);
    this.#sizes.set(descriptor, 0);
    return descriptor;
  }

  writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, position: number): number {
    const size = this.#sizes.get(descriptor)!;
    const grows = Math.max(0, position + length - size);
    const written = grows > this.room ? length - (grows - this.room) : length;
    if (written <= 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const done = nodeFiles.writeSync(descriptor, bytes, offset, written, position);
    this.#sizes.set(descriptor, Math.max(size, position + done));
    this.room -= Math.max(0, position + done - size);
    return done;
  }

  ftruncateSync(descriptor: number, length: number): void {
    nodeFiles.ftruncateSync(descriptor, length);
    this.room += this.#sizes.get(descriptor)! - length;
    this.#sizes.set(descriptor, length);
  }

  fdatasync(descriptor: number, done: (error: Error | null) => void): void {
    if (this.failSync) setImmediate(done, Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }));
    else nodeFiles.fdatasync(descriptor, done);
  }

  closeSync(descriptor: number): void {
    nodeFiles.closeSync(descriptor);
  }

  unlinkSync(path: string): void {
    nodeFiles.unlinkSync(path);
    this.room += this.#sizes.get(this.#paths.get(path)!)!;
  }
}

test('on a full disk new requests are refused, running ones are still entered, and space restores service', async (t) => {
  const directory = folder(t);
  const clock = new TestClock();
  const disk = new SmallDisk(8_000);
  const health: boolean[] = [];
  const journal = journalIn(directory, { clock, files: disk, onHealth: (problem) => health.push(problem === null) });
  const written: string[] = [];
  assert.throws(
    () => {
      for (let n = 0; ; n++) {
        journal.append('I', `["intent",${n}]`);
        written.push(`["intent",${n}]`);
      }
    },
    { status: 503 },
  );
  assert.ok(written.length > 50);
  for (let n = 0; n < 20; n++) {
    assert.ok(journal.appendAnyway('S', `["settled",${n}]`));
    written.push(`["settled",${n}]`);
  }
  assert.throws(() => journal.append('I', '["refused"]'), { status: 503 });
  clock.advance(150);
  assert.throws(() => journal.append('I', '["still full"]'), { status: 503 });
  disk.room += 200_000;
  clock.advance(150);
  journal.append('I', '["again"]');
  assert.deepEqual(texts(await records(directory)), [...written, '["again"]']);
  assert.deepEqual(health, [false, true]);
  await journal.close(true);
});

test('if a batch of records does not fit completely, a replay sees none of them', async (t) => {
  const directory = folder(t);
  const clock = new TestClock();
  const disk = new SmallDisk(8_100);
  const journal = journalIn(directory, { clock, files: disk });
  const four = recordsOf('["a"]', '["b"]', '["c"]', '["d"]');
  disk.room = (four.length * 3) / 4;
  assert.throws(() => journal.appendRecords(four), { status: 503 });
  assert.deepEqual(await records(directory), []);
  assert.ok(journal.appendRecordsAnyway(recordsOf('["a"]', '["b"]')));
  assert.deepEqual(texts(await records(directory)), ['["a"]', '["b"]']);
  await journal.close(true);
});

test('a failed fdatasync stops acceptance until a fresh segment can be written', async (t) => {
  const directory = folder(t);
  const clock = new TestClock();
  const disk = new SmallDisk(1_000_000);
  const journal = journalIn(directory, { clock, files: disk });
  disk.failSync = true;
  journal.append('I', '["a"]');
  await journal.sync();
  assert.throws(() => journal.append('I', '["b"]'), { status: 503 });
  disk.failSync = false;
  clock.advance(150);
  assert.equal(journal.append('I', '["c"]').number, 2);
  assert.deepEqual(texts(await records(directory)), ['["a"]', '["c"]']);
  await journal.close(true);
});

test('a real full file system behaves the same', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'journal-'));
  t.after(() => rmSync(directory, { recursive: true }));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', directory], { stdio: 'ignore' });
  } catch {
    return t.skip('mounting a small file system needs root');
  }
  try {
    await fillAndRecover(directory);
  } finally {
    execFileSync('umount', [directory]);
  }
});

async function fillAndRecover(directory: string): Promise<void> {
  const clock = new TestClock();
  const journal = journalIn(directory, { clock, segmentBytes: 64 * 1024 });
  const filler = join(directory, 'filler');
  writeFileSync(filler, Buffer.alloc(300 * 1024));
  let intents = 0;
  assert.throws(
    () => {
      for (;;) {
        journal.append('I', `["${'x'.repeat(500)}"]`);
        intents += 1;
      }
    },
    { status: 503 },
  );
  assert.ok(journal.appendAnyway('S', '["settled"]'));
  rmSync(filler);
  clock.advance(150);
  journal.append('I', '["again"]');
  const found = await records(directory);
  assert.equal(found.length, intents + 2);
  assert.deepEqual(texts(found.slice(-2)), ['["settled"]', '["again"]']);
  await journal.close(true);
}

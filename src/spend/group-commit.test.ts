import assert from 'node:assert/strict';
import * as nodeFiles from 'node:fs';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { silentLog } from '../base/log.ts';
import { GroupCommit } from './group-commit.ts';
import { Journal, type Segment } from './journal.ts';

const yes = () => true;

interface Setting {
  commits: GroupCommit;
  /** Sizes of the writes to the file system. */
  writes: number[];
  /** Free bytes on the disk, excluding the ballast. */
  disk: { room: number };
  text(): string;
  endTurn(): void;
}

/** The test decides when a turn of the event loop ends. */
function setting(t: TestContext, log: Log = silentLog): Setting {
  const directory = mkdtempSync(join(tmpdir(), 'commits-'));
  const writes: number[] = [];
  const disk = { room: Number.POSITIVE_INFINITY };
  const files = {
    ...nodeFiles,
    writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, position: number): number {
      if (length > disk.room) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      disk.room -= length;
      writes.push(length);
      return nodeFiles.writeSync(descriptor, bytes, offset, length, position);
    },
    unlinkSync(path: string): void {
      nodeFiles.unlinkSync(path);
      if (path.endsWith('ballast')) disk.room += 1_000;
    },
  };
  const journal = new Journal({ directory, clock: systemClock, ballastBytes: 1_000, files });
  t.after(async () => {
    await journal.close(true);
    rmSync(directory, { recursive: true, force: true });
  });
  writes.length = 0;
  let ends: (() => void)[] = [];
  const commits = new GroupCommit(journal, log, (run) => ends.push(run));
  return {
    commits,
    writes,
    disk,
    text: () => readFileSync(join(directory, '00000001.log'), 'utf8'),
    endTurn() {
      const now = ends;
      ends = [];
      for (const run of now) run();
    },
  };
}

const same = (segment: Segment) => segment;

test('the records of one turn are journaled in one write before any request continues', async (t) => {
  const { commits, writes, text, endTurn } = setting(t);
  const events: string[] = [];
  const note = (name: string, json: string) => events.push(`${name} ${text().includes(json)}`);
  const intents = ['["a"]', '["b"]'].map((json) => commits.intent(json, yes, same).then(() => note('begun', json)));
  const places: number[] = [];
  for (const json of ['["c"]', '["d"]']) {
    commits.settled(json, '', (_segment, offset) => {
      note('settled', json);
      places.push(text().indexOf(json) - offset);
    });
  }
  assert.deepEqual([writes.length, events], [0, []]);
  endTurn();
  await Promise.all(intents);
  assert.equal(writes.length, 1);
  assert.deepEqual(events, ['settled true', 'settled true', 'begun true', 'begun true']);
  assert.deepEqual(places, [10, 10], 'each row gets its offset');
  assert.deepEqual(
    text()
      .split('\n')
      .map((line) => `${line[0] ?? ''}${line.slice(10)}`),
    ['I["a"]', 'I["b"]', 'S["c"]', 'S["d"]', ''],
  );
  endTurn();
  assert.equal(writes.length, 1, 'a turn in which nothing is said writes nothing');
});

test('an intent that is no longer wanted at the end of the turn is not written', async (t) => {
  const { commits, text, endTurn } = setting(t);
  let wanted = true;
  const gone = commits.intent('["gone"]', () => wanted, same);
  const kept = commits.intent('["kept"]', yes, same);
  let place = -1;
  commits.settled('["row"]', '', (_segment, offset) => {
    place = offset;
  });
  wanted = false;
  endTurn();
  assert.equal(await gone, undefined);
  assert.equal((await kept)?.uses, 2);
  assert.match(text().slice(place), /^S[0-9a-f]{8} \["row"\]/);
  assert.ok(text().includes('kept') && !text().includes('gone'));
});

test('on a full disk intents are refused, and rows of the same turn use the ballast', async (t) => {
  const { commits, disk, text, endTurn } = setting(t);
  disk.room = 10;
  const segments: unknown[] = [];
  const refused = assert.rejects(commits.intent('["refused"]', yes, same), { status: 503 });
  commits.settled('["kept"]', '', (segment) => segments.push(segment));
  endTurn();
  await refused;
  assert.equal(segments.length, 1);
  assert.ok(segments[0] !== undefined);
  assert.ok(text().includes('kept') && !text().includes('refused'));
  assert.throws(() => commits.intent('["at once"]', yes, same), { status: 503 });
});

test('if even the ballast does not suffice, the failure is reported to the waiting request', async (t) => {
  const { commits, disk, endTurn } = setting(t);
  disk.room = -2_000;
  const segments: unknown[] = [];
  commits.settled('["lost"]', '', (segment) => segments.push(segment));
  endTurn();
  assert.deepEqual(segments, [undefined]);
});

test('an answer that cannot be sent does not delay others, and is logged', async (t) => {
  const logged: string[] = [];
  const { commits, endTurn } = setting(t, { ...silentLog, error: (message) => logged.push(message) });
  const events: string[] = [];
  commits.settled('["a"]', '', () => {
    throw new Error('a bug');
  });
  commits.settled('["b"]', '', () => events.push('b'));
  const begun = commits.intent('["c"]', yes, same);
  endTurn();
  assert.ok(await begun);
  assert.deepEqual([events, logged], [['b'], ['callback of a settled record failed']]);
});

test('records added while a turn ends go into the next write', async (t) => {
  const { commits, text, endTurn } = setting(t);
  commits.settled('["first"]', '', () => commits.settled('["second"]', '', () => {}));
  endTurn();
  assert.ok(text().includes('first') && !text().includes('second'));
  endTurn();
  assert.ok(text().includes('second'));
});

test('a commit before the end of the turn leaves nothing to write', (t) => {
  const { commits, writes, endTurn } = setting(t);
  commits.settled('["early"]', '', () => {});
  commits.commit();
  endTurn();
  assert.equal(writes.length, 1);
});

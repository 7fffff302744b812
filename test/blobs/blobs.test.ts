import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { type BlobBackend, BlobUnavailable } from '../../src/blobs/backend.ts';
import { type Blobs, blobMigrations, createBlobs, diskBackend } from '../../src/blobs/index.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { emptyFolder, freshDatabase } from '../../src/testing/database/database.ts';
import { samples } from '../../src/testing/laws/samples.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

async function setup(t: TestContext, wrap: (backend: BlobBackend) => BlobBackend = (backend) => backend) {
  const { database } = await freshDatabase(t, { migrations: blobMigrations });
  const folder = emptyFolder(t);
  const clock = new TestClock();
  const blobs = createBlobs({ database, clock, log: silentLog, backend: wrap(diskBackend(folder)) });
  const files = () => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const states = async () =>
    (await database.query<{ state: string }>('select state from blobs order by id')).map(({ state }) => state);
  return { database, folder, clock, blobs, files, states };
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function contentOf(blobs: Blobs, id: string, range?: { start: number; end: number }): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of await blobs.read(id, range)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('content of any size in any pieces is read back whole and in ranges', async (t) => {
  const { blobs } = await setup(t);
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 700_000 }),
      fc.integer({ min: 500, max: 300_000 }),
      fc.nat(),
      fc.nat(),
      async (size, piece, from, to) => {
        const bytes = randomBytes(size);
        const blob = await blobs.write(pieces(bytes, piece));
        assert.equal(blob.bytes, size);
        assert.deepEqual(await contentOf(blobs, blob.id), bytes);
        if (size === 0) return;
        const [start, end] = [Math.min(from % size, to % size), Math.max(from % size, to % size) + 1];
        assert.deepEqual(await contentOf(blobs, blob.id, { start, end }), bytes.subarray(start, end));
      },
    ),
    { numRuns: samples(40) },
  );
});

test('content that fails half-way leaves no file, and its row goes an hour later', async (t) => {
  const { blobs, clock, files, states } = await setup(t);
  async function* broken() {
    yield Buffer.from('some');
    throw new GatewayError('payload_too_large', 'too much');
  }
  await assert.rejects(blobs.write(broken()), { type: 'payload_too_large' });
  assert.deepEqual(files(), []);
  clock.advance(HOUR_MS + 1);
  await blobs.clean();
  assert.deepEqual(await states(), []);
});

test('cleaning removes what was dropped at once and what nothing kept after a day, and nothing else', async (t) => {
  const { blobs, clock, database, files, states } = await setup(t);
  const [kept, dropped, abandoned] = await Promise.all(
    ['kept', 'dropped', 'abandoned'].map((text) => blobs.write(pieces(Buffer.from(text), 3))),
  );
  await database.transaction((tx) => blobs.keep(tx, kept!.id));
  await database.transaction((tx) => blobs.keep(tx, dropped!.id));
  await database.transaction((tx) => blobs.drop(tx, dropped!.id));
  await blobs.clean();
  assert.equal(files().length, 2);
  assert.deepEqual((await contentOf(blobs, abandoned!.id)).toString(), 'abandoned');
  clock.advance(DAY_MS + 1);
  await blobs.clean();
  assert.deepEqual(await states(), ['kept']);
  assert.equal(files().length, 1);
  assert.deepEqual((await contentOf(blobs, kept!.id)).toString(), 'kept');
  await assert.rejects(
    database.transaction((tx) => blobs.keep(tx, abandoned!.id)),
    /gone/,
  );
});

test('a blob that a transaction keeps is abandoned again when that is rolled back', async (t) => {
  const { blobs, clock, database, states } = await setup(t);
  const blob = await blobs.write(pieces(Buffer.from('x'), 1));
  const failed = database.transaction(async (tx) => {
    await blobs.keep(tx, blob.id);
    throw new Error('no');
  });
  await assert.rejects(failed, /no/);
  clock.advance(DAY_MS + 1);
  await blobs.clean();
  assert.deepEqual(await states(), []);
});

test('bytes that changed or are missing on the disk are never given out as whole', async (t) => {
  const { blobs, folder } = await setup(t);
  const blob = await blobs.write(pieces(Buffer.from('the true content'), 4));
  const file = path.join(folder, blob.id.slice(-2), blob.id);
  assert.ok(existsSync(file));
  writeFileSync(file, 'the wrong content');
  await assert.rejects(contentOf(blobs, blob.id), /damaged/);
  writeFileSync(file, 'the true conten');
  await assert.rejects(contentOf(blobs, blob.id), /damaged/);
  await (await import('node:fs/promises')).rm(file);
  await assert.rejects(contentOf(blobs, blob.id), { status: 500, message: /missing/ });
});

test('a full disk is 503 to try again, and leaves nothing behind', async (t) => {
  const { blobs, clock, files, states } = await setup(t, (disk) => ({
    ...disk,
    async write(key, content) {
      for await (const _ of content) {
        throw new BlobUnavailable('no space is left', { cause: new Error('ENOSPC') });
      }
      await disk.write(key, content);
    },
  }));
  await assert.rejects(blobs.write(pieces(Buffer.from('x'), 1)), { status: 503, message: /storage for files/ });
  clock.advance(HOUR_MS + 1);
  await blobs.clean();
  assert.deepEqual([files(), await states()], [[], []]);
});

test('a folder that cannot be written is 503', async (t) => {
  const { database } = await freshDatabase(t, { migrations: blobMigrations });
  const blocked = path.join(emptyFolder(t), 'file');
  writeFileSync(blocked, '');
  const blobs = createBlobs({
    database,
    clock: new TestClock(),
    log: silentLog,
    backend: diskBackend(path.join(blocked, 'blobs')),
  });
  await assert.rejects(blobs.write(pieces(Buffer.from('x'), 1)), { status: 503 });
});

test('content that is read in part or not at all leaves no open file', {
  skip: !existsSync('/proc/self/fd'),
}, async (t) => {
  const { blobs } = await setup(t);
  const blob = await blobs.write(pieces(randomBytes(2_000_000), 100_000));
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  for (let count = 0; count < 20; count += 1) {
    await blobs.read(blob.id);
    for await (const _ of await blobs.read(blob.id)) break;
  }
  assert.ok(open() <= before, `${open() - before} files are left open`);
});

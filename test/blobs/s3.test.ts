/** Blobs in a bucket, over sockets, against a server that checks signatures, checksums and conditions. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { uuidv7 } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import { type Blobs, blobMigrations, createBlobs, diskBackend } from '../../src/blobs/index.ts';
import type { S3Options } from '../../src/blobs/s3/connection.ts';
import { checkBucket, s3Backend } from '../../src/blobs/s3/index.ts';
import { PART_BYTES } from '../../src/blobs/s3/writing.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { emptyFolder, freshDatabase } from '../../src/testing/database/database.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { S3_KEYS, type S3Fault, type S3Server, startS3 } from '../../src/testing/upstream/s3-server.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NO_RESPONSE: readonly S3Fault[] = ['silence', 'silence', 'silence'];
const RESETS: readonly S3Fault[] = ['reset', 'reset', 'reset'];
const BUSY: readonly S3Fault[] = Array.from({ length: 3 }, () => ({ status: 503, code: 'SlowDown' }));

function optionsOf(s3: S3Server, change: Partial<S3Options> = {}): S3Options {
  return {
    bucket: s3.bucket,
    region: s3.region,
    endpoint: s3.endpoint,
    prefix: 'some/folder/',
    pathStyle: true,
    keys: { accessKeyId: S3_KEYS.id, secretAccessKey: new Secret(S3_KEYS.secret) },
    timeLimits: { connectMs: 1_000, responseMs: 1_000, idleMs: 1_000 },
    ...change,
  };
}

async function setup(t: TestContext, change: Partial<S3Options> = {}) {
  const { database } = await freshDatabase(t, { migrations: blobMigrations });
  const s3 = await startS3(t);
  const clock = new TestClock();
  const backend = s3Backend(optionsOf(s3, change));
  const blobs = createBlobs({ database, clock, log: silentLog, backend });
  t.after(() => blobs.close());
  const rows = async () =>
    (await database.query<{ state: string }>('select state from blobs order by id')).map(({ state }) => state);
  return { database, s3, clock, backend, blobs, rows };
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function wholeOf(content: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const contentOf = async (blobs: Blobs, id: string, range?: { start: number; end: number }) =>
  wholeOf(await blobs.read(id, range));

test('content of any size in any pieces is read back whole and in ranges, and every request is signed and checked', async (t) => {
  const { blobs, s3 } = await setup(t);
  const borders = [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 2 * PART_BYTES + 1];
  const size = fc.oneof(fc.constantFrom(...borders), fc.integer({ min: 0, max: 13_000_000 }));
  await fc.assert(
    fc.asyncProperty(
      size,
      fc.integer({ min: 10_000, max: 7_000_000 }),
      fc.nat(),
      fc.nat(),
      async (bytes, piece, a, b) => {
        const content = randomBytes(bytes);
        const blob = await blobs.write(pieces(content, piece));
        assert.equal(blob.bytes, bytes);
        assert.ok(content.equals(await contentOf(blobs, blob.id)));
        if (bytes === 0) return;
        const [start, end] = [Math.min(a % bytes, b % bytes), Math.max(a % bytes, b % bytes) + 1];
        assert.ok(content.subarray(start, end).equals(await contentOf(blobs, blob.id, { start, end })));
        s3.objects.clear();
      },
    ),
    { numRuns: borders.length + samples(13), examples: borders.map((bytes) => [bytes, 1_000_000, 0, bytes]) },
  );
  assert.deepEqual(s3.violations, []);
  assert.equal(s3.uploads.size, 0);
});

test('no more than one part is read ahead of what the bucket has taken', async (t) => {
  const { blobs, s3 } = await setup(t);
  const piece = randomBytes(100_000);
  let [given, most] = [0, 0];
  const taken = () =>
    s3.requests.reduce((sum, { bytes, operation }) => (operation === 'UploadPart' ? sum + bytes : sum), 0);
  async function* counted() {
    for (let count = 0; count < 300; count += 1) {
      given += piece.length;
      most = Math.max(most, given - taken());
      yield piece;
    }
  }
  await blobs.write(counted());
  assert.ok(given > 5 * PART_BYTES);
  assert.ok(most <= PART_BYTES + piece.length, `${most} bytes are in memory`);
});

test('an object that exists is never overwritten', async (t) => {
  const { backend, s3 } = await setup(t);
  const first = Buffer.from('the first');
  for (const second of [Buffer.from('the second'), randomBytes(PART_BYTES + 1)]) {
    const id = uuidv7(0);
    await backend.write(id, pieces(first, 100));
    await assert.rejects(backend.write(id, pieces(second, 1_000_000)), /there already/);
    assert.deepEqual(await wholeOf(await backend.read(id)), first);
  }
  assert.deepEqual(s3.violations, []);
});

for (const operation of ['PutObject', 'CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload']) {
  test(`a ${operation} whose response is lost is repeated, and its content is written once`, async (t) => {
    const { blobs, s3 } = await setup(t);
    const content = randomBytes(operation === 'PutObject' ? 1000 : PART_BYTES + 1000);
    s3.fail(operation, 'reset after effect');
    const blob = await blobs.write(pieces(content, 1_000_000));
    assert.ok(content.equals(await contentOf(blobs, blob.id)));
    assert.equal(s3.objects.size, 1);
    assert.equal(
      s3.requests.filter((request) => request.operation === operation).length,
      2 + (operation === 'UploadPart' ? 1 : 0),
    );
  });

  test(`a ${operation} that fails repeatedly is 503 to retry, and nothing is left of the content`, async (t) => {
    const { blobs, s3, clock, rows } = await setup(t, { timeLimits: { responseMs: 100 } });
    const content = randomBytes(operation === 'PutObject' ? 1000 : PART_BYTES + 1000);
    for (const faults of [BUSY, RESETS, NO_RESPONSE]) {
      s3.fail(operation, ...faults);
      await assert.rejects(blobs.write(pieces(content, 1_000_000)), (error: { status?: number; details?: object }) => {
        assert.equal(error.status, 503);
        assert.match(inspect(error), /retryable: true/);
        return true;
      });
    }
    assert.equal(s3.objects.size, 0);
    assert.deepEqual(await rows(), ['dropped', 'dropped', 'dropped']);
    for (const upload of s3.uploads.values()) upload.begun = new Date(clock.now());
    clock.advance(DAY_MS + 1);
    await blobs.clean();
    assert.deepEqual([await rows(), s3.objects.size, s3.uploads.size], [[], 0, 0]);
  });
}

test('a write that takes effect after it has failed is removed too', async (t) => {
  const { blobs, s3, clock, rows } = await setup(t);
  s3.fail('PutObject', 'reset', 'reset', 'reset after effect');
  await assert.rejects(blobs.write(pieces(Buffer.from('late'), 1)), { status: 503 });
  await blobs.clean();
  assert.deepEqual([await rows(), s3.objects.size], [['dropped'], 1]);
  clock.advance(HOUR_MS + 1);
  await blobs.clean();
  assert.deepEqual([await rows(), s3.objects.size], [[], 0]);
});

test('content that breaks off in the middle of an upload leaves no parts', async (t) => {
  const { blobs, s3 } = await setup(t);
  async function* broken() {
    yield randomBytes(PART_BYTES + 1);
    throw new Error('the client has gone');
  }
  await assert.rejects(blobs.write(broken()), /the client has gone/);
  assert.deepEqual([s3.objects.size, s3.uploads.size], [0, 0]);
});

test('a download whose connection breaks resumes where it ended, and gives up when nothing more comes', async (t) => {
  const { blobs, s3 } = await setup(t);
  const content = randomBytes(1_000_000);
  const blob = await blobs.write(pieces(content, 100_000));
  s3.fail('GetObject', ...Array.from({ length: 10 }, () => ({ cutAfter: 60_000 })));
  assert.ok(content.equals(await contentOf(blobs, blob.id)));
  s3.fail('GetObject', ...Array.from({ length: 20 }, () => ({ cutAfter: 0 })));
  await assert.rejects(contentOf(blobs, blob.id), { status: 503 });
});

test('bytes that changed in the bucket are never given out as whole, also when they change during a download', async (t) => {
  const { blobs, s3 } = await setup(t);
  const blob = await blobs.write(pieces(Buffer.from('the true content'), 4));
  const [[key, object]] = [...s3.objects] as [
    [string, { body: Buffer; etag: string; metadata: Record<string, string> }],
  ];
  s3.objects.set(key, { ...object, body: Buffer.from('the liar content') });
  await assert.rejects(contentOf(blobs, blob.id), /damaged/);
  const content = await blobs.read(blob.id);
  s3.objects.set(key, { ...object, etag: '"another"' });
  await assert.rejects(wholeOf(content), { status: 500, message: /missing/ });
  s3.objects.clear();
  await assert.rejects(contentOf(blobs, blob.id), { status: 500, message: /missing/ });
});

test('a bucket that is missing, refused or unreachable is 503, and the log says why without the secret', async (t) => {
  const { database, s3, clock } = await setup(t);
  const wrong = { accessKeyId: S3_KEYS.id, secretAccessKey: new Secret('another-secret-of-somebody') };
  for (const [change, reason] of [
    [{ bucket: 'another-bucket' }, /the bucket does not exist/],
    [{ keys: wrong }, /the secret access key is wrong/],
    [{ endpoint: 'http://127.0.0.1:9' }, /ECONNREFUSED/],
  ] as const) {
    const blobs = createBlobs({ database, clock, log: silentLog, backend: s3Backend(optionsOf(s3, change)) });
    t.after(() => blobs.close());
    await assert.rejects(blobs.write(pieces(Buffer.from('x'), 1)), (error: { status?: number }) => {
      assert.equal(error.status, 503);
      assert.match(inspect(error, { depth: 10 }), reason);
      assert.doesNotMatch(inspect(error, { depth: 10 }), /secret-of/);
      return true;
    });
  }
  const backend = s3Backend(optionsOf(s3, { bucket: 'another-bucket' }));
  t.after(() => backend.close());
  await assert.rejects(backend.read(uuidv7(0)), /the bucket does not exist/, 'not: the blob is missing');
});

test('content that is not read causes no request to the bucket', async (t) => {
  const { blobs, s3 } = await setup(t);
  const blob = await blobs.write(pieces(randomBytes(100_000), 100_000));
  await blobs.read(blob.id);
  assert.equal(s3.requests.filter(({ operation }) => operation === 'GetObject').length, 0);
});

test('cleaning aborts uploads of dead processes after a day, and no other', async (t) => {
  const { blobs, s3, clock } = await setup(t);
  const upload = (key: string, ageMs: number) => {
    const id = `upload-${s3.uploads.size}`;
    s3.uploads.set(id, { id, key, begun: new Date(clock.now() - ageMs), metadata: {}, parts: new Map() });
    return id;
  };
  for (let count = 0; count < 7; count += 1) upload(`some/folder/${uuidv7(count)}`, DAY_MS + 1);
  const left = [
    upload(`some/folder/${uuidv7(0)}`, DAY_MS - 1),
    upload('some/folder/of-another-program', 2 * DAY_MS),
    upload(uuidv7(0), 2 * DAY_MS),
  ];
  await blobs.clean();
  assert.deepEqual([...s3.uploads.keys()], left);
});

test('blobs stay where they are when a bucket is added to the configuration or removed', async (t) => {
  const { database, s3, clock, backend, rows } = await setup(t);
  const parts = { database, clock, log: silentLog };
  const disk = diskBackend(emptyFolder(t));
  const [before, during] = [
    createBlobs({ ...parts, backend: disk }),
    createBlobs({ ...parts, backend, others: [disk] }),
  ];
  const old = await before.write(pieces(Buffer.from('old'), 1));
  const young = await during.write(pieces(Buffer.from('young'), 1));
  assert.equal(s3.objects.size, 1);
  assert.equal((await contentOf(during, old.id)).toString(), 'old');
  assert.equal((await contentOf(before, old.id)).toString(), 'old');
  await assert.rejects(before.read(young.id), { status: 503 });
  for (const { id } of [old, young]) await database.transaction((tx) => during.drop(tx, id));
  await before.clean();
  assert.deepEqual([await rows(), s3.objects.size], [['dropped'], 1]);
  await during.clean();
  assert.deepEqual([await rows(), s3.objects.size], [[], 0]);
});

test('content that is complete only after its row was cleaned up is refused and removed', async (t) => {
  const { blobs, s3, clock } = await setup(t);
  async function* slow() {
    yield Buffer.from('some');
    clock.advance(DAY_MS + 1);
    await blobs.clean();
    yield Buffer.from('more');
  }
  await assert.rejects(blobs.write(slow()), { status: 503 });
  assert.equal(s3.objects.size, 0);
});

test('the check of a bucket tries what is needed, says what is missing, and leaves nothing', async (t) => {
  const s3 = await startS3(t);
  assert.equal(await checkBucket(optionsOf(s3)), undefined);
  s3.conditional = false;
  assert.match((await checkBucket(optionsOf(s3)))!, /ignores conditional writes/);
  s3.fail('ListMultipartUploads', { status: 403, code: 'AccessDenied' });
  await assert.rejects(checkBucket(optionsOf(s3)), /access is denied/);
  assert.equal(s3.objects.size, 0);
  assert.deepEqual(s3.violations, []);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, createGzip, deflateRawSync, deflateSync, gzipSync, constants as zlib } from 'node:zlib';
import { readEncoding, Unpacker } from '../../../src/providers/send/unpack.ts';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import { cutBytes } from '../../../src/testing/recordings/cuts.ts';
import { TransportBench } from './transport.ts';

describe('compressed answers', () => {
  const bench = new TransportBench();
  const { send, exchange, scripted } = bench;

  const events = Array.from({ length: 200 }, (_, at) => `data: {"at":${at},"text":"北京 ${'x'.repeat(at)}"}\n\n`).join(
    '',
  );

  test('gzip, both variants of deflate and br are decompressed, however they are cut', async () => {
    const packed: [string, Buffer][] = [
      ['gzip', gzipSync(events)],
      ['X-GZip', gzipSync(events)],
      ['deflate', deflateSync(events)],
      ['deflate', deflateRawSync(events)],
      ['br', brotliCompressSync(events)],
      ['identity', Buffer.from(events)],
    ];
    for (const [encoding, bytes] of packed) {
      for (const step of [bytes.length, 997, 50]) {
        const headers = { 'content-encoding': encoding, 'content-type': 'text/event-stream' };
        const receiver = await exchange(scripted({ headers, chunks: cutBytes(bytes, step) }));
        assert.ok(receiver.text === events, `${encoding} in pieces of ${step}`);
        assert.deepEqual(receiver.headers, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' });
      }
    }
  });

  test('an event is delivered when its bytes arrive, not at the end of the stream', async () => {
    const gzip = createGzip({ flush: zlib.Z_SYNC_FLUSH });
    const flushed = async (text: string): Promise<Buffer> => {
      const parts: Buffer[] = [];
      const collect = (part: Buffer) => void parts.push(part);
      gzip.on('data', collect);
      await new Promise<void>((resolve) => void gzip.write(text, () => gzip.flush(() => resolve())));
      await settle(3);
      gzip.off('data', collect);
      return Buffer.concat(parts);
    };
    const first = await flushed('data: 1\n\n');
    const second = await flushed('data: 2\n\n');
    const { receiver } = send(
      scripted({ headers: { 'content-encoding': 'gzip' }, chunks: [first, { gate: 'gzip' }, second], end: 'reset' }),
    );
    await until(() => receiver.text === 'data: 1\n\n', 'the first event');
    bench.upstream.open('gzip');
    await until(() => receiver.over, 'the exchange is over');
    assert.deepEqual([receiver.text, receiver.failure?.kind], ['data: 1\n\ndata: 2\n\n', 'cut']);
    gzip.destroy();
  });

  test('data received before a cut is delivered before the failure, paused or not', async () => {
    // Few bytes that take long to decompress, so that the connection closes first.
    const text = 'data: again and again\n\n'.repeat(100_000);
    const bytes = gzipSync(text);
    const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bytes.length + 1}\r\n\r\n`;
    for (const pause of [false, true]) {
      const { receiver, call } = send(scripted({ raw: [Buffer.concat([Buffer.from(head), bytes])], end: 'cut' }));
      receiver.onData = () => {
        if (!pause) return;
        call.pause();
        setImmediate(() => call.resume());
      };
      await until(() => receiver.over, 'the exchange is over');
      assert.equal(receiver.failure?.kind, 'cut');
      assert.ok(receiver.text === text, `${receiver.bytes} of ${text.length}`);
    }
  });

  test('damaged or truncated data and unknown encodings are malformed, and an empty body is empty', async () => {
    const whole = gzipSync(events);
    const answers: [string, Buffer][] = [
      ['gzip', Buffer.from('not packed at all')],
      ['gzip', whole.subarray(0, whole.length - 20)],
      ['zip', whole],
    ];
    for (const [encoding, bytes] of answers) {
      const receiver = await exchange(scripted({ headers: { 'content-encoding': encoding }, chunks: [bytes] }));
      assert.deepEqual([receiver.failure?.kind, receiver.sent, receiver.failure?.status], ['malformed', true, 200]);
    }
    assert.equal((await exchange(scripted({ headers: { 'content-encoding': 'gzip' } }))).ended, true);
  });

  test('an error status stays one, with its wait, whatever the encoding of its body', async () => {
    for (const encoding of ['zip', 'gzip, br', 'gzip']) {
      const headers = { 'content-encoding': encoding, 'retry-after': '7' };
      const receiver = await exchange(scripted({ status: 429, headers, chunks: ['not packed at all'] }));
      assert.deepEqual([receiver.status, receiver.headers['retry-after'], receiver.text], [429, '7', '']);
      assert.equal(receiver.ended, encoding !== 'gzip');
    }
  });

  test('truncated data is delivered up to where it ends, however it is cut', async () => {
    const whole = gzipSync(events);
    for (const step of [whole.length, 500, 50]) {
      const pieces = cutBytes(whole.subarray(0, whole.length - 4), step);
      const read = await unpacked('gzip', pieces);
      assert.ok(read.text === events && read.end === 'failed', `in pieces of ${step}: ${read.text.length}`);
    }
  });

  test('nothing is awaited after the end of the compressed data', async () => {
    const bytes = Buffer.concat([gzipSync(events), Buffer.from('\0\0more')]);
    const headers = { 'content-encoding': 'gzip', 'content-length': String(bytes.length + 100) };
    const url = scripted({ headers, chunks: [bytes], end: 'stall' });
    const receiver = await exchange(url);
    assert.ok(receiver.ended && receiver.text === events);
    await until(() => bench.requests(url)[0]?.closedEarlyAt !== undefined, 'the connection is closed');
  });

  test('a small response that expands to 100 MB is stopped by a pause and ended by an abort', async () => {
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024));
    const { receiver, call } = send(scripted({ headers: { 'content-encoding': 'gzip' }, chunks: [bomb] }));
    receiver.keep = false;
    receiver.onData = () => {
      if (receiver.bytes > 1_000_000) call.pause();
    };
    await until(() => receiver.bytes > 1_000_000, 'a megabyte');
    await settle(50);
    assert.ok(receiver.bytes < 2_000_000, `${receiver.bytes} bytes`);
    call.abort();
    await settle(10);
    assert.equal(receiver.over, false);
    await bench.transport.close();
    assert.equal(bench.clock.timers, 0);
  });
});

/** The output of pieces that all arrive before the first one is decompressed. */
function unpacked(encoding: string, pieces: readonly Buffer[]): Promise<{ text: string; end: 'ended' | 'failed' }> {
  return new Promise((resolve) => {
    let text = '';
    const unpacker = new Unpacker(readEncoding(encoding)!, {
      unpacked: (chunk) => {
        text += chunk;
      },
      unpackedEnd: () => resolve({ text, end: 'ended' }),
      unpackFailed: () => resolve({ text, end: 'failed' }),
      unpackDrained: () => {},
    });
    for (const piece of pieces) unpacker.write(piece);
    unpacker.end();
  });
}

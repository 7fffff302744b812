import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audioSeconds } from './duration.ts';

const wave = (rate: number, stated: number, held: number): Buffer => {
  const bytes = Buffer.alloc(44 + held);
  bytes.write('RIFF....WAVEfmt ', 0, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(2, 22);
  bytes.writeUInt32LE(rate / 4, 24);
  bytes.writeUInt32LE(0xffffffff, 28);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(stated, 40);
  return bytes;
};

test('a wave lasts as long as its samples, whatever its header states', () => {
  assert.equal(audioSeconds(wave(8_000, 16_000, 16_000), 'audio/wav'), 2);
  assert.equal(audioSeconds(wave(8_000, 0xffffffff, 4_000), 'audio/wav'), 0.5);
  assert.equal(audioSeconds(wave(8_000, 0, 16_000), 'audio/wav'), 2);
  assert.equal(audioSeconds(wave(8_000, 100, 16_000), 'audio/wav'), 2);
  assert.equal(audioSeconds(wave(0, 100, 100), 'audio/wav'), undefined);
  const compressed = wave(8_000, 100, 100);
  compressed.writeUInt16LE(2, 20);
  assert.equal(audioSeconds(compressed, 'audio/wav'), undefined);
});

test('an mp3 is the sum of its frames, between tags and rubbish', () => {
  const frame = Buffer.alloc(417);
  frame.set([0xff, 0xfb, 0x90, 0x00]);
  const tag = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 3, 0xff, 0xfb, 0x90]);
  const seconds = audioSeconds(Buffer.concat([tag, frame, Buffer.from('??'), frame, frame]), 'audio/mpeg')!;
  assert.equal(seconds.toFixed(5), ((3 * 1152) / 44_100).toFixed(5));
  assert.equal(audioSeconds(Buffer.alloc(100), 'audio/mpeg'), undefined);
});

test('flac states its samples, and broken or other audio has no duration', () => {
  const flac = Buffer.alloc(42);
  flac.write('fLaC');
  flac.writeUIntBE(48_000 << 4, 18, 3);
  flac.writeUInt32BE(96_000, 22);
  assert.equal(audioSeconds(flac, 'audio/flac'), 2);
  assert.equal(audioSeconds(Buffer.concat([flac, Buffer.alloc(480_000 - 42)]), 'audio/flac'), 10);
  for (const type of ['audio/wav', 'audio/mpeg', 'audio/flac', 'audio/ogg']) {
    for (let length = 0; length < 50; length += 1) {
      assert.equal(audioSeconds(Buffer.alloc(length), type), undefined);
      assert.ok((audioSeconds(Buffer.alloc(length, 0xff), type) ?? 0) >= 0);
    }
  }
});

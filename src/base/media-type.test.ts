import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sniffMediaType } from './media-type.ts';

const KNOWN: [string, string | Buffer][] = [
  ['image/png', Buffer.from('89504e470d0a1a0a', 'hex')],
  ['image/jpeg', Buffer.from('ffd8ffe0', 'hex')],
  ['image/gif', 'GIF89a..'],
  ['image/webp', 'RIFF....WEBPVP8 '],
  ['image/avif', '\0\0\0\x1cftypavif'],
  ['image/heic', '\0\0\0\x1cftypheic'],
  ['image/bmp', 'BM....\0\0\0\0'],
  ['image/tiff', 'II*\0'],
  ['image/svg+xml', '<?xml version="1.0"?>\n<!-- a -->\n<svg xmlns="http://www.w3.org/2000/svg">'],
  ['image/svg+xml', '  <svg>'],
  ['application/pdf', '%PDF-1.7'],
  ['audio/wav', 'RIFF....WAVEfmt '],
  ['audio/mpeg', 'ID3\x04'],
  ['audio/mpeg', Buffer.from('fffb9064', 'hex')],
  ['audio/ogg', 'OggS'],
  ['audio/flac', 'fLaC'],
  ['video/mp4', '\0\0\0\x18ftypisom'],
  ['video/webm', Buffer.from('1a45dfa3', 'hex')],
];

for (const [type, bytes] of KNOWN) {
  test(`${JSON.stringify(bytes.toString('latin1').slice(0, 12))} is ${type}`, () => {
    assert.equal(sniffMediaType(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes, 'latin1')), type);
  });
}

test('pages, texts and nothing are no media', () => {
  const pages = ['', 'hello', '<!doctype html><svg>', '<html><body><svg></svg>', '{"error":1}', 'WEBP', '........WEBP'];
  for (const page of pages) assert.equal(sniffMediaType(Buffer.from(page)), undefined, page);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { chat, messages, responses } from '../index.ts';
import { dataUrlFault, imageFault, withoutDataUrl } from './media-bytes.ts';

const base64 = (head: readonly number[] | string) => {
  const bytes = typeof head === 'string' ? Buffer.from(head, 'latin1') : Buffer.from(head);
  return Buffer.concat([bytes, Buffer.alloc(64)]).toString('base64');
};

const IMAGES = [
  base64([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  base64([0xff, 0xd8, 0xff, 0xe0]),
  base64('GIF89a'),
  base64('RIFF\0\0\0\0WEBPVP8 '),
  base64('\0\0\0\x18ftypheic'),
];

const FAULTY: [string, RegExp][] = [
  ['', /no data/],
  ['@@ no base64 at all, just words @@', /not base64/],
  [base64('<!DOCTYPE html><title>404</title>'), /not the data of an image/],
  [base64('%PDF-1.7 and so on, at some length'), /not the data of an image/],
];

test('images are recognized by their first bytes, whatever their label', () => {
  for (const data of IMAGES) {
    for (const type of ['image/png', 'image/jpeg', 'image/webp']) assert.equal(imageFault(type, data), undefined, data);
  }
  for (const [data, fault] of FAULTY) assert.match(imageFault('image/png', data)!, fault);
  // Other image types are not checked.
  assert.equal(imageFault('image/svg+xml', base64('<svg>')), undefined);
  assert.equal(dataUrlFault('https://example.com/a.png'), undefined);
  assert.equal(dataUrlFault('data:image/png,percent%20encoded'), undefined);
});

test('an undecodable image is rejected with the path of its field', () => {
  for (const [data] of FAULTY) {
    const url = `data:image/png;base64,${data}`;
    const source = { type: 'base64', media_type: 'image/png', data };
    const image = { type: 'image', source };
    const ask = { model: 'm', max_tokens: 10 };
    const refused: [() => void, string][] = [
      [
        () =>
          chat.check({ ...ask, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }),
        'messages[0].content[0].image_url.url',
      ],
      [
        () => messages.check({ ...ask, messages: [{ role: 'user', content: [image] }] }),
        'messages[0].content[0].source.data',
      ],
      [
        () =>
          responses.check({
            model: 'm',
            input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }],
          }),
        'input[0].content[0].image_url',
      ],
    ];
    for (const [run, path] of refused) {
      assert.throws(
        run,
        (error) => error instanceof GatewayError && error.status === 400 && error.details.path === path,
      );
    }
  }
});

/** Spellings of base64 that lenient decoders accept (RFC 2045, RFC 2397, RFC 4648). */
const spellings = (bytes: Buffer): string[] => {
  const plain = bytes.toString('base64');
  return [
    plain,
    plain.replace(/=+$/, ''),
    bytes.toString('base64url'),
    ` ${plain}`,
    `${'  \r\n'.repeat(30)}${plain}`,
    plain.replace(/(.{4})/g, '$1\r\n'),
    plain.replace(/(.{76})/g, '$1\n'),
    encodeURIComponent(plain),
  ];
};

test('an image is known however its base64 is spelled, and strict services get strict base64', () => {
  for (const image of IMAGES) {
    // The last bytes need characters in which the alphabets differ, and padding.
    const bytes = Buffer.concat([Buffer.from(image, 'base64'), Buffer.from([0xfb, 0xff, 0xbe, 0xff])]);
    for (const data of spellings(bytes)) {
      const url = `data:image/png;base64,${data}`;
      assert.equal(imageFault('image/png', data), undefined, data);
      assert.equal(dataUrlFault(url), undefined, data);
      for (const source of [{ kind: 'bytes', mediaType: 'image/png', data } as const, { kind: 'url', url } as const]) {
        assert.deepEqual(withoutDataUrl(source), {
          kind: 'bytes',
          mediaType: 'image/png',
          data: bytes.toString('base64'),
        });
      }
    }
  }
  const broken = { kind: 'bytes', mediaType: 'image/png', data: '@@ no base64' } as const;
  assert.deepEqual(withoutDataUrl(broken), broken);
});

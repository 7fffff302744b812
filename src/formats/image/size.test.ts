import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeMultipart } from '../direct/multipart.ts';
import { dimensionsOf } from './dimensions.ts';
import { isOfRatio, isOfTier, nearestRatio, nearestTier, pixelsFor, pixelsOf, RATIOS, TIER_NAMES } from './size.ts';

test('pixels computed from a ratio and a tier match both', () => {
  for (const ratio of RATIOS) {
    for (const tier of TIER_NAMES) {
      const pixels = pixelsFor({ ratio, tier }, 16);
      assert.equal(pixels.width % 16, 0);
      assert.ok(isOfTier(pixels, tier), `${ratio} ${tier} ${JSON.stringify(pixels)}`);
      // Small sides in steps of 16 cannot be exact.
      if (Math.min(pixels.width, pixels.height) > 500) assert.ok(isOfRatio(pixels, ratio), `${ratio} ${tier}`);
    }
  }
});

test('the sizes of services match their ratio, and others do not', () => {
  assert.ok(isOfRatio({ width: 1344, height: 768 }, '16:9'));
  assert.ok(isOfRatio({ width: 1536, height: 1024 }, '3:2'));
  assert.ok(!isOfRatio({ width: 1536, height: 1024 }, '4:3'));
  assert.ok(!isOfRatio({ width: 1024, height: 1536 }, '3:2'));
  assert.ok(isOfTier({ width: 3840, height: 2160 }, '4K'));
  assert.ok(!isOfTier({ width: 512, height: 512 }, '2K'));
});

test('clamping picks the nearest offered value and keeps offered ones', () => {
  assert.equal(nearestRatio('21:9', ['1:1', '16:9', '9:16']), '16:9');
  assert.equal(nearestRatio('9:20', ['1:1', '16:9', '9:16']), '9:16');
  assert.equal(nearestTier('4K', ['512', '1K', '2K']), '2K');
  for (const ratio of RATIOS) assert.equal(nearestRatio(ratio, RATIOS), ratio);
});

test('only two numbers of sensible size are pixels', () => {
  assert.deepEqual(pixelsOf('1024x768'), { width: 1024, height: 768 });
  for (const text of ['1024', '1024x', 'x768', '1024×768', '15x15', '20000x10', '-1x5', '1e3x10', ' 10x10']) {
    assert.equal(pixelsOf(text), undefined, text);
  }
});

test('a form upload survives parsing, whatever it contains', async () => {
  const text = fc.string({ unit: 'binary' }).map((value) => value.replace(/\r\n?|\n/g, ' '));
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), text),
      fc.uint8Array({ maxLength: 200 }),
      async (fields, bytes) => {
        const file = { name: 'image', filename: 'a"b\r\n.png', mediaType: 'image/png', bytes: Buffer.from(bytes) };
        const { contentType, body } = encodeMultipart(fields, [file]);
        const form = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
        const read = form.get('image') as File;
        assert.deepEqual(new Uint8Array(await read.arrayBuffer()), bytes);
        assert.equal(read.type, 'image/png');
        for (const [name, value] of Object.entries(fields)) {
          if (name !== 'image') assert.equal(form.get(name), Buffer.from(value).toString());
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('image sizes are read from every type, and not from damaged data', () => {
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d4948445200000500000002d0', 'hex'), Buffer.alloc(20)]);
  const jpeg = Buffer.concat([
    Buffer.from('ffd8ffe00004aaaaffc0001108', 'hex'),
    Buffer.from([2, 208, 5, 0]),
    Buffer.alloc(20),
  ]);
  const gif = Buffer.concat([Buffer.from('GIF89a'), Buffer.from([0, 5, 208, 2]), Buffer.alloc(20)]);
  const webp = Buffer.concat([
    Buffer.from('RIFF....WEBPVP8X'),
    Buffer.alloc(8),
    Buffer.from([0xff, 4, 0, 0xcf, 2, 0]),
    Buffer.alloc(10),
  ]);
  for (const bytes of [png, jpeg, gif, webp]) {
    assert.deepEqual(dimensionsOf(bytes.toString('base64')), { width: 1280, height: 720 });
  }
  assert.equal(dimensionsOf(''), undefined);
  assert.equal(dimensionsOf(Buffer.from('ffd8'.padEnd(200, 'f'), 'hex').toString('base64')), undefined);
  fc.assert(fc.property(fc.uint8Array(), (bytes) => void dimensionsOf(Buffer.from(bytes).toString('base64'))));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zipOf } from '../testing/documents/zip.ts';
import { typed } from './content-type.ts';

const CHUNK_BYTES = 10_000;

/** The type of a file that arrives in pieces. Its content must come through unchanged. */
async function typeOf(content: Buffer): Promise<string> {
  async function* pieces() {
    for (let at = 0; at < content.length; at += CHUNK_BYTES) yield content.subarray(at, at + CHUNK_BYTES);
  }
  const { mimeType, content: checked } = await typed(pieces(), 'a.docx');
  const seen: Buffer[] = [];
  for await (const chunk of checked) seen.push(chunk);
  assert.ok(Buffer.concat(seen).equals(content));
  return mimeType();
}

test('an Office document is known wherever its parts are in the zip, and any other zip is refused', async () => {
  const large = Buffer.alloc(300_000, 'x');
  for (const [folder, type] of [
    ['word', 'wordprocessingml.document'],
    ['xl', 'spreadsheetml.sheet'],
    ['ppt', 'presentationml.presentation'],
  ] as const) {
    const parts = ['[Content_Types].xml', `${folder}/main.xml`];
    for (const names of [
      ['media/film', ...parts],
      [...parts, 'media/film'],
      [parts[0]!, 'media/film', parts[1]!],
    ]) {
      const content = zip(names.map((name) => [name, name === 'media/film' ? large : Buffer.from('<x/>')]));
      const wanted = `application/vnd.openxmlformats-officedocument.${type}`;
      assert.equal(await typeOf(content), wanted, names.join());
    }
    for (const [content, name] of [
      [
        zip([
          ['media/film', large],
          ...parts.map((each): [string, Buffer] => [each, large]),
          [`${folder}/vbaProject.bin`, large],
        ]),
        'macros',
      ],
      [
        zip([
          ['media/film', large],
          [parts[1]!, large],
        ]),
        'no content types',
      ],
      [
        zip([['media/film', large], ...parts.map((each): [string, Buffer] => [each, large])]).subarray(0, -10),
        'cut off',
      ],
      [Buffer.concat([zip([['media/film', large]]), Buffer.from('PK\x05\x06')]), 'a broken end'],
    ] as const) {
      await assert.rejects(typeOf(content), /file must be a PDF.* it is application\/zip/, name);
    }
  }
});

/** Entries as they are, not compressed. */
const zip = (entries: Parameters<typeof zipOf>[0]) => zipOf(entries, 'store');

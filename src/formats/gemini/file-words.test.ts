import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileReferences, replaceReferences } from '../conversation/file-words.ts';
import { fileWords, storedFileId } from './file-words.ts';

const HEX = '01a22ccb583c7fb1aae45499b9a85bed';
const ID = `svc_file_${HEX}`;

test('a URI names a file of this gateway under any host but those of Google', () => {
  const own = ['files/', 'http://h/v1beta/files/', 'https://h:1/llm/v1/files/', `https://h/v1beta/files/svc_file_`];
  for (const before of own) assert.equal(storedFileId(before + HEX), ID, before);
  assert.equal(storedFileId(`files/${HEX.toUpperCase()}`), ID);
  const others = [
    `https://generativelanguage.googleapis.com/v1beta/files/${HEX}`,
    `https://storage.googleapis.com/v1/files/${HEX}`,
    `https://h/files/${HEX}`,
    `https://h/x?/v1beta/files/${HEX}`,
    `https://h/v1beta/files/${HEX}:download`,
    `gs://h/v1beta/files/${HEX}`,
    `https://h/v1beta/files/${HEX.slice(1)}`,
    'files/abc',
    HEX,
    '',
  ];
  for (const uri of others) assert.equal(storedFileId(uri), undefined, uri);
});

test('references are found and replaced in lists of parts, single parts and function responses, never in arguments', () => {
  const reference = { fileData: { fileUri: `files/${HEX}` } };
  const body = (part: object, single: object) => ({
    contents: [
      { parts: [{ text: 'a' }, part] },
      { parts: single },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { parts: [reference] } } }] },
      { parts: [{ function_response: { name: 'f', response: { parts: [reference] }, parts: [part] } }] },
    ],
  });
  const before = body(reference, reference);
  const found = fileReferences(structuredClone(before), fileWords);
  assert.deepEqual(
    found.map(({ id, path, holds }) => [id, path, holds]),
    [
      [ID, 'contents[0].parts[1].fileData.fileUri', 'document'],
      [ID, 'contents[1].parts[0].fileData.fileUri', 'document'],
      [ID, 'contents[3].parts[0].function_response.parts[0].fileData.fileUri', 'medium'],
    ],
  );
  const changed = structuredClone(before);
  replaceReferences(changed.contents, fileWords, (part) => fileWords.text(part, { text: 'b', filename: 'c' }));
  assert.deepEqual(changed, body({ text: 'b' }, { text: 'b' }));
});

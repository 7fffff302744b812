import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memberTypes } from './member-types.ts';
import { duration, integer, list, mapping, oneOf, text } from './readers.ts';

test('readers tell the members, types and requirements that they accept', () => {
  const read = (field: Parameters<typeof mapping>[0]) =>
    mapping(
      field,
      {
        name: text,
        kind: oneOf(['red', 'blue']),
        drain: duration,
        limits: list((item) => mapping(item, { most: integer(1, 5) }, ['most'])),
      },
      ['kind'],
    );
  assert.deepEqual(memberTypes(read, 'any'), [
    { path: 'name', type: 'text', required: false },
    { path: 'kind', type: 'one of red, blue', required: true },
    { path: 'drain', type: 'a duration such as 500ms, 5s or 2m', required: false },
    { path: 'limits', type: 'list', required: false },
    { path: 'limits[]', type: 'mapping', required: false },
    { path: 'limits[].most', type: 'an integer from 1 to 5', required: true },
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../base/errors.ts';
import { type Piece, RequestsReader } from './requests-reader.ts';

const nameItem = (index: number) => `requests[${index}]`;
const LIMITS = { itemBytes: 10_000, memberBytes: 1_000, nameItem };

function piecesOf(text: string, cuts: readonly number[] = [], limits = LIMITS): Piece[] {
  const reader = new RequestsReader(limits);
  const bytes = Buffer.from(text);
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  const pieces: Piece[] = [];
  for (let n = 1; n < places.length; n += 1) {
    // The server may use the memory of a chunk again.
    const chunk = Buffer.from(bytes.subarray(places[n - 1], places[n]));
    for (const piece of reader.read(chunk)) pieces.push({ ...piece, bytes: Buffer.from(piece.bytes) });
    chunk.fill(0);
  }
  reader.end();
  return pieces;
}

const name = fc.string({ maxLength: 8 }).filter((key) => key !== 'requests' && key !== '__proto__');
const members = fc.dictionary(name, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4, noNullPrototype: true });
const spaced = fc.constantFrom(undefined, 1, '\t');

test('members and requests come out as they are in the text, however the text is cut', () => {
  fc.assert(
    fc.property(
      members,
      members,
      fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 }),
      spaced,
      fc.array(fc.nat(), { maxLength: 12 }),
      (before, after, requests, space, cuts) => {
        const rest = Object.fromEntries(Object.entries(after).filter(([key]) => !Object.hasOwn(before, key)));
        const whole = { ...before, requests, ...rest };
        const pieces = piecesOf(JSON.stringify(whole, undefined, space), cuts, {
          itemBytes: 1e6,
          memberBytes: 1e6,
          nameItem,
        });
        const read: Record<string, unknown> = { requests: [] };
        for (const piece of pieces) {
          const value = JSON.parse(piece.bytes.toString()) as unknown;
          if (piece.kind === 'member') read[piece.key] = value;
          else assert.equal((read['requests'] as unknown[]).push(value) - 1, piece.index);
        }
        assert.deepEqual(read, JSON.parse(JSON.stringify(whole)));
      },
    ),
  );
});

test('a text that is not one complete object of single members is refused', () => {
  const bad = [
    '',
    ' ',
    '[]',
    '{',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '{a:1}',
    '{"a" 1}',
    '{"a":1}x',
    '{"a":1}{}',
    '{"requests":{}}',
    '{"requests":[1,]}',
    '{"requests":[,1]}',
    '{"requests":[1 2]}',
    '{"requests":[1]',
    '{"a":1,"a":2}',
    '{"requests":[],"requests":[]}',
    '{"requests":[],"\\u0072equests":[]}',
    '{"a":]}',
  ];
  for (const text of bad) {
    assert.throws(
      () => piecesOf(text, [1, 3]),
      (error) => error instanceof GatewayError && error.status === 400,
      text,
    );
  }
});

test('a value larger than its limit is refused before it is complete', () => {
  const long = 'x'.repeat(2_000);
  const refused = (text: string, path: string) =>
    assert.throws(
      () => piecesOf(text, [500, 1_000, 1_500]),
      (error) => {
        assert.ok(error instanceof GatewayError);
        assert.deepEqual([error.status, error.details.path], [413, path]);
        return true;
      },
    );
  refused(`{"model":"${long}`, 'model');
  refused(`{"${long}`, 'the name of a member');
  refused(`{"requests":[1,{"body":"${long.repeat(6)}`, 'requests[1]');
  assert.equal(piecesOf(`{"requests":["${long}"]}`).length, 1);
});

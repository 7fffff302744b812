import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import { GatewayError } from './errors.ts';
import { parseJson, readDocument, scanMembers, stringifyJson } from './json.ts';
import { applyEdits, editedPieces, patchMembers } from './json-edits.ts';
import { findFault } from './json-fault.ts';

const read = (text: string | Buffer) => readDocument(Buffer.from(text as string));

/** The message of the 400 that reading `text` ends with. */
function refusalOf(text: string | Buffer): string {
  try {
    read(text);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.status, 400);
    assert.equal(error.type, 'invalid_request');
    return error.message;
  }
  throw new Error('it was read');
}

/** Well-formed objects with keys and texts of every width, without the one key that documents refuse. */
const anyObject = fc
  .dictionary(
    fc.string({ unit: 'grapheme' }).filter((key) => key !== '__proto__' && !JSON.stringify(key).includes('\\')),
    fc
      .jsonValue({ stringUnit: 'grapheme', maxDepth: 4 })
      .filter((value) => !JSON.stringify(value).includes('__proto__')),
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

/** The value as JSON with the given white space between tokens; `escapes` writes texts and inner keys with escapes. */
function spell(value: unknown, space: string, escapes: boolean, isTop = true): string {
  const quote = (text: string, escaped: boolean) =>
    escaped
      ? JSON.stringify(text).replace(
          /[^\x20-\x7e]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        )
      : JSON.stringify(text);
  if (typeof value === 'string') return quote(value, escapes);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const items = Array.isArray(value)
    ? value.map((item) => spell(item, space, escapes, false))
    : Object.entries(value).map(
        ([key, item]) => `${quote(key, escapes && !isTop)}${space}:${space}${spell(item, space, escapes, false)}`,
      );
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}${space}${items.join(`${space},${space}`)}${space}${close}`;
}

describe('a document', () => {
  test('has the value that JSON.parse gives, whatever the spelling', () => {
    fc.assert(
      fc.property(anyObject, fc.constantFrom('', ' ', '\r\n\t'), fc.boolean(), (object, space, escapes) => {
        const text = ` ${spell(object, space, escapes)}\n`;
        const document = read(text);
        assert.deepEqual(document.value, JSON.parse(text));
        assert.deepEqual(JSON.parse(stringifyJson(document.exact)), JSON.parse(text));
        for (const key of Object.keys(object)) assert.deepEqual(document.member(key), object[key]);
        for (const member of document.members) {
          const written = document.bytes.toString('utf8', member.valueStart, member.valueEnd);
          assert.deepEqual(JSON.parse(written), object[member.key]);
          assert.equal(document.bytes[member.keyStart], 0x22);
        }
      }),
      { numRuns: samples(500) },
    );
  });

  test('shows structure, ASCII texts and numbers before anything is decoded', () => {
    const { structure, value } = read('{"model":"acme/large","n":[1.5,true,null],"text":"grüße"}');
    assert.equal(structure['model'], 'acme/large');
    assert.deepEqual(structure['n'], [1.5, true, null]);
    assert.notEqual(structure['text'], 'grüße');
    assert.equal(value['text'], 'grüße');
  });

  test('of ASCII is one object in all views', () => {
    const document = read('{"a":{"b":1}}');
    assert.equal(document.value, document.structure);
    assert.equal(document.exact, document.structure);
  });

  test('keeps numbers that a double would falsify in its exact view only', () => {
    const text =
      '{"big":9007199254740993,"fine":0.30000000000000004,"huge":1e400,"one":1.0,"precise":0.12345678901234567891}';
    const document = read(text);
    assert.equal(document.value['big'], 9007199254740992);
    assert.equal(document.exact['fine'], 0.30000000000000004);
    assert.equal(
      stringifyJson(document.exact),
      '{"big":9007199254740993,"fine":0.30000000000000004,"huge":1e400,"one":1,"precise":0.12345678901234567891}',
    );
  });

  test('has an own field called constructor like any other', () => {
    assert.equal(read('{"constructor":1}').member('constructor'), 1);
    assert.equal(read('{}').member('constructor'), undefined);
  });
});

describe('what is refused, by its place', () => {
  const cases: [name: string, text: string | Buffer, message: string | RegExp][] = [
    ['an empty body', '', /is empty at byte 0/],
    ['an array', '[1]', 'the body must be a JSON object'],
    ['a number', '3', 'the body must be a JSON object'],
    ['null', 'null', 'the body must be a JSON object'],
    ['a byte order mark', '\ufeff{}', /byte order mark/],
    ['a missing brace', '{"a":1', /ends too early at byte 6/],
    ['a trailing comma', '{"a":1,}', /unexpected '}' instead of a key in double quotes at byte 7/],
    ['trailing garbage', '{"a":1} x', /unexpected 'x' at byte 8/],
    ['a second document', '{"a":1}{}', /unexpected '{' at byte 7/],
    ['a broken literal', '{"a":[0,tru]}', /unexpected 't' at byte 8 \(a\[1\]\)/],
    ['a leading zero', '{"a":01}', /unexpected '1' at byte 6 \(a\)/],
    ['single quotes', "{'a':1}", /instead of a key in double quotes at byte 1/],
    ['a raw newline in a text', '{"a":"x\ny"}', /control character in a string at byte 7 \(a\)/],
    ['a broken escape', '{"a":{"b":"\\x"}}', /broken escape in a string at byte 11 \(a\.b\)/],
    ['a truncated escape', '{"a":"\\u12', /broken escape in a string at byte 6 \(a\)/],
    ['an unterminated text', '{"a":"é', /ends inside a string at byte 8 \(a\)/],
    ['a lone high surrogate', '{"m":[{"t":"\\ud83d"}]}', /^m\[0\]\.t has half of a surrogate pair \(\\ud83d\)/],
    ['a lone low surrogate', '{"m":["é\\uDE00"]}', /^m\[0\] has half of a surrogate pair/],
    ['a surrogate in a key', '{"m":{"\\ud83d":1}}', /^m has half of a surrogate pair/],
    ['a key twice', '{"a":1,"b":2,"a":3}', 'the body has the key "a" twice'],
    ['a key twice, inside', '{"m":[0,{"é":1,"é":2}]}', 'm[1] has the key "é" twice'],
    ['a key twice in two spellings', '{"m":{"a":1,"\\u0061":2}}', 'm has the key "a" twice'],
    ['an escaped top-level key', '{"\\u006dodel":"x"}', 'the body has the key "model" written with escapes'],
    ['__proto__', '{"m":[{"__proto__":{"x":1}}]}', 'm[0] must not have the key "__proto__"'],
    ['__proto__ at the top', '{"__proto__":1}', 'the body must not have the key "__proto__"'],
    ['__proto__ in escapes', '{"m":{"__pr\\u006fto__":1}}', 'm must not have the key "__proto__"'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xc3, 0xa9, 0xff, 0x22]), /not valid UTF-8 at byte 4/],
    ['an overlong slash', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22]), /not valid UTF-8 at byte 2/],
    ['a cut character', Buffer.from([0x7b, 0x22, 0xef, 0xbf, 0xbd, 0xe2, 0x82]), /not valid UTF-8 at byte 5/],
  ];
  for (const [name, text, message] of cases) {
    test(name, () => {
      if (typeof message === 'string') assert.equal(refusalOf(text), message);
      else assert.match(refusalOf(text), message);
    });
  }

  test('nesting past the bound, while the bound itself is taken', () => {
    const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    assert.ok(read(nested(128)));
    assert.match(refusalOf(nested(129)), /^a\[0\].* is nested deeper than 128 levels$/);
  });

  test('a pair of surrogates and an escaped backslash before u are no fault', () => {
    assert.equal(read('{"a":"\\ud83d\\ude00"}').value['a'], '😀');
    assert.equal(read('{"a":"\\\\ud83d"}').value['a'], '\\ud83d');
  });

  test('__proto__ as a text is no fault', () => {
    assert.equal(read('{"a":"__proto__"}').value['a'], '__proto__');
  });

  test('the judge finds a fault exactly where JSON.parse does', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '"b"',
      '\\',
      '1',
      '-',
      '.5',
      'e9',
      'true',
      'null',
      ' ',
      '\\u00e',
      'é',
      '\n',
      '0',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 14 }), (parts) => {
        const text = Buffer.from(`{"x":${parts.join('')}}`).toString('latin1');
        const fault = findFault(text, 128);
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        // A key that is not taken is told before what comes behind it is looked at.
        if (fault === undefined || fault.syntax) assert.equal(fault === undefined, parses, text);
      }),
      { numRuns: samples(3000) },
    );
  });
});

describe('hostile bodies end with a 400 in linear time', () => {
  const MEGA = 2 ** 20;
  const cases: [name: string, make: (size: number) => string][] = [
    ['deep arrays', (size) => '['.repeat(size)],
    ['deep objects', (size) => '{"a":'.repeat(size / 5)],
    ['quotes', (size) => `{${'"'.repeat(size)}`],
    ['backslashes', (size) => `{"a":"${'\\'.repeat(size)}`],
    ['escaped quotes', (size) => `{"a":"${'\\"'.repeat(size / 2)}`],
    ['truncated escapes', (size) => `{"a":"${'\\u'.repeat(size / 2)}"}`],
    ['lone surrogates', (size) => `{"a":"${'\\ud800'.repeat(size / 6)}"}`],
    ['one key many times', (size) => `{"m":{${'"a":1,'.repeat(size / 6)}"a":1}}`],
    ['commas', (size) => `{${','.repeat(size)}}`],
    ['a long number', (size) => `{"a":${'1'.repeat(size)}x}`],
    ['many keys, then garbage', (size) => `{${Array.from({ length: size / 12 }, (_, index) => `"${index}":1`).join()}`],
    ['white space', (size) => ' '.repeat(size)],
  ];
  for (const [name, make] of cases) {
    test(name, () => {
      const cost = (size: number) => {
        const bytes = Buffer.from(make(size));
        const before = process.cpuUsage();
        refusalOf(bytes);
        const { user, system } = process.cpuUsage(before);
        return user + system;
      };
      cost(MEGA / 16);
      // A quadratic reading of a mebibyte would take minutes; the allowance is for a busy machine.
      assert.ok(cost(MEGA) < 1_500_000);
    });
  }

  test('numbers of a million digits stay exact without costing more than their length', () => {
    const digits = `1${'0'.repeat(500_000)}1`;
    const text = `{"a":${digits},"b":1e${'9'.repeat(500_000)}}`;
    const before = process.cpuUsage();
    assert.equal(stringifyJson(read(text).exact), text);
    assert.ok(process.cpuUsage(before).user < 1_500_000);
  });
});

describe('edits', () => {
  const anyEdits = fc.array(
    fc.record({
      pick: fc.nat(),
      fresh: fc.boolean(),
      key: fc.string({ unit: 'grapheme', minLength: 1 }),
      value: fc.option(fc.jsonValue({ maxDepth: 2, stringUnit: 'grapheme' }), { nil: undefined }),
    }),
    { maxLength: 5 },
  );

  /** Edits of present and absent keys, and what the object is after them. */
  function plan(object: Record<string, unknown>, raw: { pick: number; fresh: boolean; key: string; value: unknown }[]) {
    const keys = Object.keys(object);
    const after = new Map(Object.entries(object));
    const edits = raw
      .map(({ pick, fresh, key, value }) => ({
        key: fresh || keys.length === 0 ? key : keys[pick % keys.length]!,
        value,
      }))
      .filter(({ key }, index, all) => key !== '__proto__' && all.findIndex((other) => other.key === key) === index);
    for (const { key, value } of edits) {
      if (value === undefined) after.delete(key);
      else after.set(key, value);
    }
    return {
      edits: edits.map(({ key, value }) => ({ key, json: value === undefined ? undefined : JSON.stringify(value) })),
      after,
    };
  }

  test('of a document equal edits of its object, and touch no other byte', () => {
    fc.assert(
      fc.property(anyObject, anyEdits, fc.integer({ min: 0, max: 2 }), (object, raw, spaces) => {
        const { edits, after } = plan(object, raw);
        const document = read(JSON.stringify(object, null, spaces));
        const result = applyEdits(document, edits);
        assert.deepEqual(Buffer.concat(editedPieces(document, edits)), result);
        const expected = JSON.parse(JSON.stringify(Object.fromEntries(after)));
        assert.deepEqual(JSON.parse(result.toString()), expected);
        const edited = new Set(edits.map((edit) => edit.key));
        const kept = document.members.filter((member) => !edited.has(member.key));
        let from = 0;
        for (const member of kept) {
          const bytes = document.bytes.subarray(member.keyStart, member.valueEnd);
          const at = result.indexOf(bytes, from);
          assert.notEqual(at, -1, 'an untouched member is there, in order, byte for byte');
          from = at + bytes.length;
        }
      }),
      { numRuns: samples(500) },
    );
  });

  test('of a text equal edits of a document', () => {
    fc.assert(
      fc.property(anyObject, anyEdits, fc.integer({ min: 0, max: 2 }), (object, raw, spaces) => {
        const { edits } = plan(object, raw);
        const text = JSON.stringify(object, null, spaces);
        assert.equal(patchMembers(text, scanMembers(text), edits), applyEdits(read(text), edits).toString());
      }),
      { numRuns: samples(300) },
    );
  });

  test('leave unknown fields, big integers, 1.0 and white space as they came', () => {
    const text = '{ "model" : "a" ,\n "x":9007199254740993, "y": 1.0,"stream":true }';
    const edits = [
      { key: 'model', json: '"b/ü"' },
      { key: 'stream', json: undefined },
      { key: 'user', json: '"u"' },
    ];
    assert.equal(
      applyEdits(read(text), edits).toString(),
      '{ "model" : "b/ü" ,\n "x":9007199254740993, "y": 1.0,"user":"u" }',
    );
  });

  test('that remove everything leave an empty object, and that add to one need no comma', () => {
    assert.equal(
      applyEdits(read('{ "a":1, "b":2 }'), [
        { key: 'a', json: undefined },
        { key: 'b', json: undefined },
      ]).toString(),
      '{  }',
    );
    assert.equal(
      applyEdits(read('{}'), [
        { key: 'a', json: '1' },
        { key: 'b', json: '2' },
      ]).toString(),
      '{"a":1,"b":2}',
    );
  });

  test('of one key: the last counts', () => {
    assert.equal(
      applyEdits(read('{"a":1}'), [
        { key: 'a', json: '2' },
        { key: 'a', json: '3' },
      ]).toString(),
      '{"a":3}',
    );
  });

  test('of none give the very same bytes', () => {
    const document = read('{"a":1}');
    assert.equal(applyEdits(document, []), document.bytes);
  });

  test('of a text with a duplicate key reach every occurrence', () => {
    const text = '{"id":"x","usage":null,"id":"y"}';
    assert.equal(
      patchMembers(text, scanMembers(text), [{ key: 'id', json: '"gen"' }]),
      '{"id":"gen","usage":null,"id":"gen"}',
    );
    assert.equal(patchMembers(text, scanMembers(text), [{ key: 'id', json: undefined }]), '{"usage":null}');
  });
});

describe('parseJson', () => {
  test('writes back every number with the value that it had', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.bigInt().map(String),
            fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
            fc
              .tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.stringMatching(/^\d{1,30}$/))
              .map(([whole, part]) => `${whole}.${part}`),
            fc.tuple(fc.nat(), fc.integer({ min: -400, max: 400 })).map(([whole, exponent]) => `${whole}e${exponent}`),
          ),
          { maxLength: 5 },
        ),
        (literals) => {
          const written = stringifyJson(parseJson(`[${literals.join()}]`)).slice(1, -1);
          const back = written === '' ? [] : written.split(',');
          assert.equal(back.length, literals.length);
          for (const [index, literal] of literals.entries()) assert.equal(decimal(back[index]!), decimal(literal));
        },
      ),
      { numRuns: samples(1000) },
    );
  });

  test('gives plain numbers wherever a double holds the value', () => {
    assert.deepEqual(
      parseJson('[1.0,0.10000000000000000,12345678901234567000,1e3]'),
      [1, 0.1, 12345678901234567000, 1000],
    );
  });

  test('refuses what is no JSON, or too deep, with a SyntaxError', () => {
    assert.throws(() => parseJson('{'), SyntaxError);
    assert.throws(() => parseJson(`${'['.repeat(100_000)}${']'.repeat(100_000)}`), SyntaxError);
    assert.throws(() => parseJson('['.repeat(100_000)), SyntaxError);
  });

  test('accepts 128 levels and not one more, lists and objects alike, whatever brackets are in strings', () => {
    const nested = (levels: number) => {
      const kinds = Array.from({ length: levels }, (_, level) => level % 2 === 0);
      return kinds.reduceRight((inner, isList) => (isList ? `[${inner}]` : `{"key":${inner}}`), '"[[[[{{{{"');
    };
    const wide = JSON.stringify(Array.from({ length: 300 }, () => ({ text: '[{' })));
    assert.deepEqual(parseJson(wide), JSON.parse(wide));
    assert.deepEqual(parseJson(nested(128)), JSON.parse(nested(128)));
    assert.throws(() => parseJson(nested(129)), SyntaxError);
  });
});

/** Independent exact form of a decimal: an integer and a power of ten without trailing zeros. */
function decimal(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  let units = BigInt(whole + fraction);
  let power = Number(exponent) - fraction.length;
  if (units === 0n) return '0';
  while (units % 10n === 0n) {
    units /= 10n;
    power += 1;
  }
  return `${units}e${power}`;
}

test('a body of more values than any conversation has is refused before it is parsed', () => {
  const most = (count: number) => `{"model":"m","x":[${'[],'.repeat(count)}[]]}`;
  assert.match(refusalOf(most(250_000)), /more than 250000 values/);
  assert.match(
    refusalOf(`{${Array.from({ length: 250_002 }, (_, at) => `"k${at}":1`).join()}}`),
    /more than 250000 values/,
  );
  assert.equal((read(most(249_990)).value['x'] as unknown[]).length, 249_991);
});

test('a text that is no object has no members to edit', () => {
  for (const text of ['null', ' 7', '"x"', '[]', '']) {
    assert.equal(patchMembers(text, scanMembers(text), [{ key: 'a', json: '1' }]), text);
  }
});

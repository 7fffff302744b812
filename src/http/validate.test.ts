import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type TSchema, Type } from 'typebox';
import { GatewayError } from '../base/errors.ts';
import { readDocument } from '../base/json.ts';
import { ANY_KEY } from './access-rule.ts';
import { checksOf, documentCheck, valueCheck } from './validate.ts';

function refusalOf(schema: TSchema, value: unknown): string | undefined {
  try {
    valueCheck(schema)(value);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 400);
    return error.message;
  }
}

describe('an error names the field and what it accepts', () => {
  const Leaf = Type.Object({ type: Type.Literal('leaf'), size: Type.Integer() });
  const Tree = Type.Cyclic(
    { Tree: Type.Union([Leaf, Type.Object({ type: Type.Literal('node'), children: Type.Array(Type.Ref('Tree')) })]) },
    'Tree',
  );
  const Choice = Type.Union([
    Type.Literal('auto'),
    Type.Literal('none'),
    Type.Object({ type: Type.Literal('function'), function: Type.Object({ name: Type.String() }) }),
  ]);
  const Effort = Type.Object({ effort: Type.Union([Type.Literal('low'), Type.Literal('high'), Type.Null()]) });
  const Versions = Type.Object({
    tool: Type.Union([
      Type.Object({ type: Type.Enum(['a_2024', 'a_2025']), a: Type.String() }),
      Type.Object({ type: Type.Literal('b'), b: Type.String() }),
    ]),
  });
  const cases: [name: string, schema: TSchema, value: unknown, message: string][] = [
    ['a list in a union', Type.Union([Type.String(), Type.Array(Type.String())]), ['a', 1], '[1] must be a string'],
    [
      'a branch in a tree',
      Tree,
      { type: 'node', children: [{ type: 'leaf', size: 'x' }] },
      'children[0].size must be an integer',
    ],
    [
      'a wrong tag in a tree',
      Tree,
      { type: 'node', children: [{ type: 'twig' }] },
      'children[0].type must be one of "leaf", "node"',
    ],
    ['an unknown constant', Choice, 'always', 'the body must be one of "auto", "none", or an object'],
    ['a kind that no branch has', Choice, 3, 'the body must be one of "auto", "none", or an object'],
    ['the object of a mixed union', Choice, { type: 'function', function: {} }, 'function.name is required'],
    ['the tag of a single object', Choice, { type: 'tool' }, 'type must be "function"'],
    ['constants and null', Effort, { effort: 'mid' }, 'effort must be one of "low", "high", or null'],
    ['a tag with several values', Versions, { tool: { type: 'a_2025', a: 1 } }, 'tool.a must be a string'],
    ['all values of such a tag', Versions, { tool: { type: 'c' } }, 'tool.type must be one of "a_2024", "a_2025", "b"'],
    ['a record', Type.Record(Type.String(), Type.Number()), { 'a b': 'x' }, '["a b"] must be a number'],
    [
      'an intersection',
      Type.Intersect([Type.Object({ a: Type.Number() }), Type.Object({ b: Type.Number() })]),
      { a: 1 },
      'b is required',
    ],
    ['an integer', Type.Object({ n: Type.Integer() }), { n: 1.5 }, 'n must be an integer'],
    ['more than', Type.Object({ n: Type.Number({ exclusiveMinimum: 0 }) }), { n: 0 }, 'n must be more than 0'],
    ['an empty text', Type.Object({ s: Type.String({ minLength: 1 }) }), { s: '' }, 's must not be empty'],
    ['a pattern', Type.Object({ s: Type.String({ pattern: '^a+$' }) }), { s: 'b' }, 's must match ^a+$'],
    ['a format', Type.Object({ s: Type.String({ format: 'uuid' }) }), { s: 'b' }, 's must be a valid uuid'],
    [
      'too many items',
      Type.Object({ l: Type.Array(Type.Null(), { maxItems: 1 }) }),
      { l: [null, null] },
      'l must have at most 1 item',
    ],
  ];
  for (const [name, schema, value, message] of cases) test(name, () => assert.equal(refusalOf(schema, value), message));

  test('a long list of values is shortened', () => {
    const many = Type.Enum(Array.from({ length: 200 }, (_, index) => `v${index}`) as [string, ...string[]]);
    assert.match(refusalOf(many, 'x') ?? '', /"v19", \.\.\.$/);
  });

  test('a recursive schema accepts what fits', () => {
    assert.equal(refusalOf(Tree, { type: 'node', children: [{ type: 'leaf', size: 1 }] }), undefined);
  });
});

describe('a check of a document', () => {
  const bytes = (text: string) => Buffer.from(text);

  test('decodes nothing when the structural view passes', () => {
    const document = readDocument(bytes('{"text":"é"}'));
    documentCheck(Type.Object({ text: Type.String({ maxLength: 9 }) }))(document);
    // The exact view is created only now, from bytes that have changed since.
    document.bytes.write('{"text":"ab"}');
    assert.equal(document.value['text'], 'ab');
  });

  const views: [name: string, schema: TSchema, text: string, passes: boolean][] = [
    [
      'a maximum length applies to the exact text',
      Type.Object({ s: Type.String({ maxLength: 2 }) }),
      '{"s":"éé"}',
      true,
    ],
    [
      'a minimum length applies to the exact text',
      Type.Object({ s: Type.String({ minLength: 2 }) }),
      '{"s":"é"}',
      false,
    ],
    ['a pattern applies to the exact text', Type.Object({ s: Type.String({ pattern: '^..$' }) }), '{"s":"é"}', false],
    ['a constant is compared with the exact text', Type.Object({ s: Type.Literal('é') }), '{"s":"é"}', true],
    [
      'a minimum length deep inside a union applies too',
      Type.Object({ l: Type.Array(Type.Union([Type.Null(), Type.String({ minLength: 2 })])) }),
      '{"l":["é"]}',
      false,
    ],
    [
      'a property called pattern is not a pattern',
      Type.Object({ pattern: Type.String({ maxLength: 1 }) }),
      '{"pattern":"é"}',
      true,
    ],
  ];
  for (const [name, schema, text, passes] of views) {
    test(name, () => {
      const check = () => documentCheck(schema)(readDocument(bytes(text)));
      if (passes) check();
      else assert.throws(check, GatewayError);
    });
  }

  test('modifies nothing and fills in no defaults', () => {
    const document = readDocument(bytes('{"a":"1","z":null}'));
    documentCheck(Type.Object({ a: Type.String(), b: Type.Optional(Type.Number({ default: 7 })) }))(document);
    assert.deepEqual(document.value, { a: '1', z: null });
  });
});

describe('text that the database cannot store', () => {
  const bodyCheck = (anyText?: boolean) => {
    const body = { schema: Type.Object({}, { additionalProperties: true }) };
    const check = checksOf({
      id: 'x',
      method: 'POST',
      path: '/x',
      summary: '',
      tag: '',
      access: ANY_KEY,
      ...(anyText !== undefined && { anyText }),
      body,
      replies: {},
      handle() {},
    });
    return (text: string) => check.body?.(readDocument(Buffer.from(text)));
  };
  const refused: [text: string, message: string][] = [
    ['{"ids":["a","b\\u0000"]}', 'ids[1] must not contain the character U+0000'],
    ['{"a":{"b":"\\u0000"}}', 'a.b must not contain the character U+0000'],
    ['{"a":{"b\\u0000":1}}', 'a key of a must not contain the character U+0000'],
  ];
  for (const [text, message] of refused) {
    test(`${text} is refused wherever it is stored, and allowed in prompts`, () => {
      assert.throws(() => bodyCheck()(text), { status: 400, message });
      bodyCheck(true)(text);
    });
  }

  test('the letters of the escape are not that character', () => {
    bodyCheck()('{"a":"\\\\u0000"}');
  });
});

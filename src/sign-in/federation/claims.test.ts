import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fitsPattern, unmetRule } from './claims.ts';

test('a pattern matches a complete text; * matches any characters, all others match themselves', () => {
  const fits: [string, string][] = [
    ['repo:acme/app:ref', 'repo:acme/app:ref'],
    ['repo:acme/app:ref', 'repo:acme/app:*'],
    ['repo:acme/app:', 'repo:acme/app:*'],
    ['repo:acme/app:ref', '*:ref'],
    ['abcabc', 'a*b*c'],
    ['abab', '*ab*ab'],
    ['aXbXc', 'a**c'],
    ['a.c', 'a.c'],
    ['', '*'],
  ];
  const misses: [string, string][] = [
    ['repo:acme/app', 'repo:acme/app:*'],
    ['xrepo:acme/app:', 'repo:acme/app:*'],
    ['repo:acme/app:refs', '*:ref'],
    ['ab', 'ab*b'],
    ['aba', 'ab*ba'],
    ['ab', '*ab*ab'],
    ['abc', 'a.c'],
    ['abc', 'a?c'],
    ['ABC', 'abc'],
    ['abc\n', 'abc'],
  ];
  for (const [text, pattern] of fits) assert.ok(fitsPattern(text, pattern), `${text} ~ ${pattern}`);
  for (const [text, pattern] of misses) assert.ok(!fitsPattern(text, pattern), `${text} ~ ${pattern}`);
});

test('any pattern and text give the result of the equivalent regular expression', () => {
  const piece = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 });
  fc.assert(
    fc.property(text, piece, (text, pattern) => {
      const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`);
      assert.equal(fitsPattern(text, pattern), expression.test(text));
    }),
  );
});

test('every rule must hold; a list claim satisfies a rule if one of its values matches', () => {
  const rules = [
    { name: 'sub', patterns: ['a*', 'b*'] },
    { name: 'groups', patterns: ['deployers'] },
    { name: 'verified', patterns: [true] },
  ];
  const right = { sub: 'bc', groups: ['x', 'deployers'], verified: true };
  assert.equal(unmetRule(right, rules), undefined);
  assert.equal(unmetRule({ ...right, sub: 'c' }, rules)?.name, 'sub');
  assert.equal(unmetRule({ ...right, groups: [] }, rules)?.name, 'groups');
  assert.equal(unmetRule({ ...right, verified: 'true' }, rules)?.name, 'verified');
  assert.equal(unmetRule({}, [{ name: 'constructor', patterns: ['*x*'] }])?.name, 'constructor');
});

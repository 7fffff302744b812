import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fitsPattern, unmetRule } from './claims.ts';

test('a pattern fits a whole text; * stands for any characters, all others for themselves', () => {
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

test('of any pattern and text the answer is that of the regular expression', () => {
  const piece = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 });
  fc.assert(
    fc.property(text, piece, (text, pattern) => {
      const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`);
      assert.equal(fitsPattern(text, pattern), expression.test(text));
    }),
  );
});

test('every rule must hold; a claim that is a list holds when one of its values fits', () => {
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

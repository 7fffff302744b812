import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installationOf, sessionCookie, sessionTokens } from './cookie.ts';

const token = (letter: string) => letter.repeat(43);

test('two gateways at one address keep their sessions in cookies of different names', () => {
  const place = { origin: 'https://gateway.example:8443', prefix: '' };
  const [one, two] = ['org_one', 'org_two'].map(installationOf) as [string, string];
  const pair = (installation: string, value: string) =>
    sessionCookie(value, { ...place, installation }, 60).split(';')[0]!;
  const cookies = [pair(one, token('a')), pair(two, token('b'))];
  assert.equal(new Set(cookies.map((each) => each.split('=')[0])).size, 2);
  assert.deepEqual(sessionTokens(cookies.join('; '), one), { tokens: [token('a')], arePrefixed: true });
  assert.deepEqual(sessionTokens(cookies.join('; '), two), { tokens: [token('b')], arePrefixed: true });
});

test('a cookie of an earlier version, which does not name the installation, is read', () => {
  const { tokens } = sessionTokens(`gatehouse_session_8484=${token('c')}`, installationOf('org_one'));
  assert.deepEqual(tokens, [token('c')]);
});

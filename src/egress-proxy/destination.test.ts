import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AllowList, readAuthority } from './destination.ts';
import { Refusal } from './refusal.ts';

const SAME = ['api.test:443', 'API.Test:443', 'api.test.:443', 'api.test:0443'];
for (const text of SAME) {
  test(`the authority ${text} is that of api.test`, () => {
    assert.deepEqual(readAuthority(text), { host: 'api.test', port: 443, isAddress: false });
  });
}

const MALFORMED = [
  ...['', 'api.test', ':443', 'api.test:', 'api.test:0', 'api.test:65536', 'api.test:443:443', 'api.test:443/x'],
  ...['user@api.test:443', 'user:secret@api.test:443', 'api.test/x:443', 'api.test%2f:443', 'api.test%00:443'],
  ...['api.test\\:443', 'api.test#:443', 'api.test?:443', 'api..test:443', '.api.test:443', 'api.test..:443'],
  ...[
    'bücher.test:443',
    '\xef\xbd\x81pi.test:443',
    'api。test:443',
    'api.test :443',
    ' api.test:443',
    'api\t.test:443',
  ],
  ...['http://api.test:443', '//api.test:443', '[::1:443', '::1:443', '[fe80::1%25eth0]:443', '*.test:443'],
  `${'a'.repeat(64)}.test:443`,
  `${'a.'.repeat(127)}test:443`,
];
for (const text of MALFORMED) {
  test(`the authority ${JSON.stringify(text.slice(0, 40))} is refused`, () => {
    assert.throws(
      () => readAuthority(text),
      (error) => error instanceof Refusal && error.reason === 'bad_request',
    );
  });
}

test('every way to write an IP address is read as that address', () => {
  for (const text of ['127.0.0.1', '127.1', '0x7f.1', '2130706433', '0177.0.0.1', '127.0.0.1.']) {
    assert.deepEqual(readAuthority(`${text}:443`), { host: '127.0.0.1', port: 443, isAddress: true }, text);
  }
  assert.deepEqual(readAuthority('[::FFFF:127.0.0.1]:443').host, '::ffff:7f00:1');
});

const allows = (list: AllowList, authority: string) => {
  try {
    list.check(readAuthority(authority));
    return 'yes';
  } catch (error) {
    return (error as Refusal).reason;
  }
};

test('exact domains and globs allow what they say, on the listed ports', () => {
  const list = new AllowList(['api.test', '*.deep.test', 'eu-*.glob.test', '10.0.0.1', 'EXACT.test.'], [443, 80]);
  const expected: [string, string][] = [
    ['api.test:443', 'yes'],
    ['api.test:80', 'yes'],
    ['api.test:8443', 'port'],
    ['exact.test:443', 'yes'],
    ['sub.api.test:443', 'not_allowed'],
    ['xapi.test:443', 'not_allowed'],
    ['api.test.evil.test:443', 'not_allowed'],
    ['deep.test:443', 'not_allowed'],
    ['a.deep.test:443', 'yes'],
    ['a.b.deep.test:443', 'yes'],
    ['adeep.test:443', 'not_allowed'],
    ['eu-1.glob.test:443', 'yes'],
    ['eu-1.x.glob.test:443', 'not_allowed'],
    ['us-1.glob.test:443', 'not_allowed'],
    ['10.0.0.1:443', 'yes'],
    ['0xa.0.0.1:443', 'yes'],
    ['10.0.0.2:443', 'not_allowed'],
  ];
  for (const [authority, answer] of expected) assert.equal(allows(list, authority), answer, authority);
});

test('a star allows every name, and no IP address', () => {
  const list = new AllowList(['*'], [443]);
  assert.equal(allows(list, 'anything.test:443'), 'yes');
  for (const address of ['127.0.0.1', '[::1]', '0x7f.1']) assert.equal(allows(list, `${address}:443`), 'not_allowed');
});

test('malformed domains are refused', () => {
  for (const domain of ['', 'https://api.test', 'api.test:443', 'a b', '*.', '**', '.*', 'api.test/x', 'a..b']) {
    assert.throws(() => new AllowList([domain], [443]), /is malformed/, domain);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Refusal } from '../refusal.ts';
import { type BoundSecret, checkSecrets, createPlaceholder } from '../secret.ts';
import { Release, SecretTexts } from './release.ts';
import type { Replacer } from './replacer.ts';
import { type Syntax, scrubbedForms, syntaxOf, writtenIn } from './value-forms.ts';

const HOST = 'api.test';
const secret = (name: string, value: string, ...hosts: string[]): BoundSecret => ({
  ...{ name, value, hosts },
  placeholder: createPlaceholder(),
});

const values = fc
  .string({ unit: 'binary', minLength: 6, maxLength: 40 })
  .filter((value) => value.isWellFormed() && value.trim().length >= 6);
const syntaxes = fc.constantFrom<Syntax>('raw', 'json', 'form', 'xml');
const cuts = fc.array(fc.nat(25), { maxLength: 20 });

function through(replacer: Replacer, whole: Buffer, sizes: readonly number[]): Buffer {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, whole.length]) {
    pieces.push(...replacer.push(whole.subarray(at, at + size)));
    at += size;
  }
  return Buffer.concat([...pieces, ...replacer.end()]);
}

function refusal(run: () => unknown): Refusal {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return error;
  }
  return assert.fail('was not refused');
}

test('a body gets the values of its host in its syntax, in whatever chunks it arrives', () => {
  fc.assert(
    fc.property(values, values, syntaxes, fc.string({ maxLength: 30 }), cuts, (one, two, syntax, between, sizes) => {
      const secrets = [secret('one', one, HOST), secret('two', two, HOST)];
      const [a, b] = secrets.map(({ placeholder }) => placeholder) as [string, string];
      const release = new Release(new SecretTexts(secrets), HOST, true);
      const sent = through(release.body(syntax), Buffer.from(`${a}${between}${b}${between}${a}`), sizes).toString();
      const [first, second] = [writtenIn(syntax, one), writtenIn(syntax, two)];
      assert.equal(sent, Buffer.from(`${first}${between}${second}${between}${first}`).toString());
      if (syntax === 'json') JSON.parse(`"${writtenIn('json', one)}"`);
      if (syntax === 'form') assert.equal(new URLSearchParams(`v=${first}`).get('v'), one);
    }),
  );
});

test('an echo in any known form, in any chunks, shows no value', () => {
  const forms = fc.tuple(values, fc.nat(100), fc.string({ maxLength: 20 }), cuts);
  fc.assert(
    fc.property(forms, ([value, which, around, sizes]) => {
      const one = secret('one', value, HOST);
      const texts = new SecretTexts([one]);
      const all = scrubbedForms(value);
      const form = all[which % all.length]!;
      const echo = Buffer.from(`${around}|${form}|${around}`);
      const seen = through(texts.scrubber(), echo, sizes).toString();
      // Replacing may join two halves only where the text around is part of the value.
      if (!all.some((each) => `${around}|${one.placeholder}|${around}`.includes(each))) {
        for (const each of all) assert.ok(!seen.includes(each), `${JSON.stringify(each)} in ${JSON.stringify(seen)}`);
      }
      assert.equal(texts.scrub(echo.toString('latin1')), Buffer.from(seen).toString('latin1'));
      assert.equal(through(texts.scrubber(true), echo, sizes).length, echo.length);
    }),
  );
});

test('what is substituted comes back as it was sent', () => {
  fc.assert(
    fc.property(values, syntaxes, cuts, cuts, (value, syntax, out, back) => {
      const one = secret('one', value, HOST);
      const texts = new SecretTexts([one]);
      const asked = Buffer.from(`{"key":"${one.placeholder}"}`);
      const sent = through(new Release(texts, HOST, true).body(syntax), asked, out);
      assert.deepEqual(through(texts.scrubber(), sent, back), asked);
    }),
  );
});

test('the base64 of a longer text with the value is scrubbed in all alignments', () => {
  const one = secret('one', 'correct-horse-battery', HOST);
  const texts = new SecretTexts([one]);
  for (const prefix of ['', 'u', 'us', 'usr', 'user:']) {
    const echo = Buffer.from(`${prefix}${one.value}!tail`).toString('base64');
    const seen = Buffer.from(texts.scrub(echo), 'base64').toString('latin1');
    assert.ok(!seen.includes(one.value.slice(2, -2)), seen);
  }
});

test('a value is found as the libraries of services escape it, also where it is escaped twice', () => {
  const one = secret('one', `p/a+b&c"d'e=<f>é`, HOST);
  const texts = new SecretTexts([one]);
  const inUrl = encodeURIComponent(one.value);
  const echoes = {
    Go: String.raw`p/a+b\u0026c\"d'e=\u003cf\u003eé`,
    Gson: String.raw`p/a+b\u0026c\"d\u0027e\u003d\u003cf\u003eé`,
    '.NET': String.raw`p/a\u002Bb\u0026c\u0022d\u0027e=\u003Cf\u003E\u00E9`,
    'html/template': 'p/a+b&amp;c&#34;d&#39;e=&lt;f&gt;é',
    'html.escape': 'p/a+b&amp;c&quot;d&#x27;e=&lt;f&gt;é',
    Mustache: 'p&#x2F;a+b&amp;c&quot;d&#39;e&#x3D;&lt;f&gt;é',
    'a redirect to sign in': encodeURIComponent(`/x?token=${inUrl}`).slice(encodeURIComponent('/x?token=').length),
    'JSON in JSON': JSON.stringify(JSON.stringify(one.value)).slice(3, -3),
  };
  for (const [library, echo] of Object.entries(echoes))
    assert.equal(texts.scrub(latin1(echo)), one.placeholder, library);
  const base64 = secret('base64', '>>>???>>>???', HOST);
  const echo = JSON.stringify(Buffer.from(base64.value).toString('base64')).replaceAll('/', '\\/');
  assert.equal(new SecretTexts([base64]).scrub(echo), `"${base64.placeholder}"`);
});

const latin1 = (text: string) => Buffer.from(text).toString('latin1');

test('a header, Basic credentials, a path and a query get the value', () => {
  const one = secret('one', 'p/ä?&"x', HOST);
  const release = new Release(new SecretTexts([one]), HOST, true);
  const bytes = Buffer.from(one.value).toString('latin1');
  assert.equal(release.header(`Bearer ${one.placeholder}`), `Bearer ${bytes}`);
  const basic = `Basic ${Buffer.from(`user:${one.placeholder}`).toString('base64')}`;
  assert.equal(release.header(basic), `Basic ${Buffer.from(`user:${one.value}`).toString('base64')}`);
  assert.equal(
    release.path(`/v/${one.placeholder}?k=${one.placeholder}`),
    '/v/p%2F%C3%A4%3F%26%22x?k=p%2F%C3%A4%3F%26%22x',
  );
  assert.equal(release.header('Basic dXNlcjpub3RoaW5n'), 'Basic dXNlcjpub3RoaW5n');
});

test('a value with a line break is not sent in a header, and makes no new one', () => {
  for (const value of ['abc\r\nx-evil: 1', 'abcdef\nx', 'abcdef\0']) {
    const one = secret('one', value, HOST);
    const release = new Release(new SecretTexts([one]), HOST, true);
    const { status, message } = refusal(() => release.header(`Bearer ${one.placeholder}`));
    assert.equal(status, 403);
    assert.match(message, /The secret one contains a line break/);
    const basic = release.header(`Basic ${Buffer.from(`u:${one.placeholder}`).toString('base64')}`);
    assert.doesNotMatch(basic, /[\r\n\0]/);
    assert.doesNotMatch(release.path(`/${one.placeholder}`), /[\r\n\0]/);
  }
});

test('a placeholder is refused everywhere on its way to another host, and the refusal names the secret', () => {
  const own = secret('own', 'own-value-1', HOST);
  const other = secret('other', 'other-value-1', 'other.test', `sub.${HOST}`);
  const texts = new SecretTexts([own, other]);
  const release = new Release(texts, HOST, true);
  const places: [string, () => unknown][] = [
    ['header', () => release.header(`Bearer ${other.placeholder}`)],
    ['basic', () => release.header(`basic ${Buffer.from(`${other.placeholder}:`).toString('base64')}`)],
    ['path', () => release.path(`/${other.placeholder}`)],
    ['query', () => release.path(`/?q=${other.placeholder}`)],
    ['name', () => release.forbid(other.placeholder)],
    ['body', () => through(release.body('json'), Buffer.from(`"${other.placeholder}"`), [3, 20])],
    ['binary body', () => through(release.body(null), Buffer.from(`"${other.placeholder}"`), [30])],
  ];
  for (const [place, run] of places) {
    const thrown = refusal(run);
    assert.equal(thrown.reason, 'secret_elsewhere', place);
    assert.equal(thrown.secret, 'other', place);
    assert.equal(thrown.message, `The secret other is not released to ${HOST}.`, place);
  }
});

test('without TLS no secret is released, not even to its host', () => {
  const own = secret('own', 'own-value-1', HOST);
  const release = new Release(new SecretTexts([own]), HOST, false);
  assert.match(refusal(() => release.header(own.placeholder)).message, /not released to api\.test without TLS/);
});

test('a body that is not text keeps its bytes', () => {
  const own = secret('own', 'own-value-1', HOST);
  const release = new Release(new SecretTexts([own]), HOST, true);
  const body = Buffer.from(`\0\x01${own.placeholder}`);
  assert.deepEqual(through(release.body(null), body, [5]), body);
});

test('short values are released, but not looked for in responses', () => {
  const pin = secret('pin', '20', HOST);
  const texts = new SecretTexts([pin]);
  assert.equal(new Release(texts, HOST, true).header(pin.placeholder), '20');
  assert.equal(texts.scrub('2026'), '2026');
});

test('content types that are text have a syntax', () => {
  const cases: [string | undefined, Syntax | null][] = [
    [undefined, 'raw'],
    ['text/event-stream', 'raw'],
    ['application/json; charset=utf-8', 'json'],
    ['application/vnd.api+JSON', 'json'],
    ['application/x-www-form-urlencoded', 'form'],
    ['image/svg+xml', 'xml'],
    ['multipart/form-data; boundary=x', 'raw'],
    ['application/grpc+proto', null],
    ['application/octet-stream', null],
    ['image/png', null],
    ['application/x-git-upload-pack-request', null],
  ];
  for (const [type, syntax] of cases) assert.equal(syntaxOf(type), syntax, String(type));
});

test('placeholders are checked before they are used', () => {
  const good = secret('good', 'value-1', HOST);
  checkSecrets([good, secret('more', 'value-2', HOST)]);
  assert.throws(() => checkSecrets([good, { ...good, name: 'twin' }]), /placeholder of the secret twin is used twice/);
  assert.throws(() => checkSecrets([{ ...good, placeholder: 'short' }]), /placeholder of the secret good is malformed/);
  assert.throws(() => checkSecrets([{ ...good, value: '' }]), /the secret good is empty/);
});

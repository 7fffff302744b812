/** Signing in to the console at an identity provider: who gets in, as whom, and what a stranger cannot do. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Gateway, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { inDatabase } from '../workspaces/control.ts';
import { CLIENT, IdentityProvider, type Person, Visitor } from './identity-provider.ts';
import { builtConsole } from './page.ts';

type Json = ReturnType<typeof JSON.parse>;

const closers: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const cleanup = { after: (close: unknown) => void closers.push(close as () => Promise<void>) };

const provider = await new IdentityProvider().listen();
cleanup.after(() => provider.close());
const yaml = (more: Json = {}) => ({
  egress: { networks: ['127.0.0.1'], ports: ['1-65535'] },
  console: {
    oidc: { name: 'Acme', issuer: provider.issuer, client_id: CLIENT.id, client_secret: CLIENT.secret, ...more },
  },
});
const gateway = await startGateway(cleanup, {
  yaml: yaml({ admins: { groups: ['gateway-*'] } }),
  consoleFolder: await builtConsole(cleanup),
});
await provider.serve(gateway.url);

const PATH = '/console/session/oidc';
const MARK = { 'x-gatehouse-console': '1' };
const page = ({ url }: Pick<Gateway, 'url'>) => ({ ...MARK, origin: url, 'sec-fetch-site': 'same-origin' });
const ADA: Person = { sub: 'ada-1', email: 'Ada@Acme.test', email_verified: true };

function addMember(id: string, email: string, role: string): Promise<void> {
  return inDatabase(gateway, [
    `insert into users (id, name, email, created_at) values ('${id}', '${id}', '${email}', now())`,
    `insert into members (organization_id, user_id, role, created_at)
       select id, '${id}', '${role}', now() from organizations`,
  ]);
}
await addMember('user_ada', 'ada@acme.test', 'admin');
await addMember('user_bob', 'bob@acme.test', 'member');

async function begun(visitor: Visitor): Promise<{ url: string; setCookie: string }> {
  const response = await visitor.send(gateway.url + PATH, { method: 'POST', headers: page(gateway) });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return { url: JSON.parse(text).data.url, setCookie: response.headers.getSetCookie()[0] ?? '' };
}

/** The URL at which the provider sends the browser back. */
async function returning(visitor: Visitor, person: Person | null): Promise<string> {
  provider.person = person;
  return visitor.follow((await begun(visitor)).url, gateway.url + PATH);
}

/** Where the gateway sends the browser then. */
async function landing(visitor: Visitor, url: string): Promise<string> {
  const response = await visitor.send(url);
  assert.equal(response.status, 302, await response.text());
  return response.headers.get('location') ?? '';
}

const arrives = async (visitor: Visitor, person: Person | null) => landing(visitor, await returning(visitor, person));

async function session(visitor: Visitor): Promise<Json> {
  const response = await visitor.send(`${gateway.url}/console/session`, { headers: page(gateway) });
  return response.json();
}

test('an administrator of the organization signs in, and acts for a key of her own', async () => {
  const visitor = new Visitor();
  const { data } = await session(visitor);
  assert.deepEqual([data.session, data.oidc], [null, { name: 'Acme' }]);
  const { url, setCookie } = await begun(visitor);
  const { searchParams } = new URL(url);
  assert.match(setCookie, /^gatehouse_oidc_\d+_i[0-9a-f]{8}=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
  assert.equal(searchParams.get('code_challenge_method'), 'S256');
  assert.equal(searchParams.get('scope'), 'openid email profile');
  for (const name of ['state', 'nonce', 'code_challenge']) assert.match(searchParams.get(name) ?? '', /^[\w-]{43}$/);

  assert.equal(await arrives(visitor, ADA), '../');
  const { data: signedIn } = await session(visitor);
  assert.equal(signedIn.session.management_key.user_id, 'user_ada');
  assert.match(signedIn.session.management_key.name, /ada@acme\.test/);
  const made = await visitor.send(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { ...page(gateway), 'content-type': 'application/json' },
    body: '{"name":"made by Ada"}',
  });
  assert.equal(made.status, 201, await made.text());
  const audit = await fetch(`${gateway.api}/audit`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
  const entries: Json[] = ((await audit.json()) as Json).data;
  const signIn = entries.find(({ action }) => action === 'console_session.created');
  assert.deepEqual([signIn.actor.type, signIn.actor.user_id], ['sign_in', 'user_ada']);
  assert.equal(entries.find(({ after: state }) => state?.name === 'made by Ada').actor.user_id, 'user_ada');

  const again = new Visitor();
  assert.equal(await arrives(again, ADA), '../');
  const { data: second } = await session(again);
  assert.equal(second.session.management_key.hash, signedIn.session.management_key.hash);
});

test('only administrators of the organization get in, by their role or by a claim', async () => {
  const bob = { sub: 'bob-1', email: 'bob@acme.test', email_verified: true };
  const cases: [Person | null, string][] = [
    [bob, 'not_admin'],
    [{ ...bob, groups: ['others'] }, 'not_admin'],
    [{ ...bob, groups: ['others', 'gateway-admins'] }, ''],
    [{ ...ADA, sub: 'eve-1', email: 'eve@acme.test' }, 'not_member'],
    [{ ...ADA, sub: 'eve-2', email_verified: false }, 'unverified'],
    [{ sub: 'eve-3', email: 'ada@acme.test' }, 'unverified'],
    [{ sub: 'eve-4' }, 'unverified'],
    [null, 'denied'],
  ];
  for (const [person, problem] of cases) {
    const visitor = new Visitor();
    const place = await arrives(visitor, person);
    assert.equal(place, problem === '' ? '../' : `../#/sign-in?problem=${problem}`, JSON.stringify(person));
    assert.equal((await session(visitor)).data.session === null, problem !== '');
  }
});

test('an answer of the provider is of use once, and only to the browser that began', async () => {
  const visitor = new Visitor();
  const url = await returning(visitor, ADA);
  const stranger = new Visitor();
  assert.equal(await landing(stranger, url), '../#/sign-in?problem=expired');
  await begun(stranger);
  assert.equal(await landing(stranger, url), '../#/sign-in?problem=failed', 'the state is of another browser');
  assert.equal((await session(stranger)).data.session, null);
  const mixed = new Visitor();
  const other = new URL(await returning(mixed, ADA));
  other.searchParams.set('iss', 'https://elsewhere.test');
  assert.equal(await landing(mixed, other.href), '../#/sign-in?problem=failed', 'of another issuer');
  assert.equal(await landing(visitor, url), '../');
  assert.equal(await landing(visitor, url), '../#/sign-in?problem=expired');
});

test('an ID token that is altered, or not for this sign-in, is refused', async () => {
  const parts = (token: string) => token.split('.') as [string, string, string];
  const claims = (token: string) => JSON.parse(Buffer.from(parts(token)[1], 'base64url').toString());
  const written = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const tampers: Record<string, (token: string) => string> = {
    'another person': (token) => {
      const [header, , signature] = parts(token);
      return [header, written({ ...claims(token), sub: 'eve' }), signature].join('.');
    },
    'no signature': (token) => [written({ alg: 'none' }), parts(token)[1], ''].join('.'),
    'an empty signature': (token) => [...parts(token).slice(0, 2), ''].join('.'),
    'no token': () => 'x',
  };
  for (const [name, tamper] of Object.entries(tampers)) {
    provider.tamper = tamper;
    const place = await arrives(new Visitor(), ADA).finally(() => {
      provider.tamper = undefined;
    });
    assert.equal(place, '../#/sign-in?problem=failed', name);
  }
  // The token of an earlier sign-in has another nonce.
  let earlier = '';
  provider.tamper = (token) => {
    earlier ||= token;
    return earlier;
  };
  assert.equal(await arrives(new Visitor(), ADA), '../');
  const place = await arrives(new Visitor(), ADA);
  provider.tamper = undefined;
  assert.equal(place, '../#/sign-in?problem=failed');
});

test('another site cannot begin', async () => {
  const headers = { ...page(gateway), 'sec-fetch-site': 'cross-site', origin: 'https://elsewhere.test' };
  assert.equal((await fetch(gateway.url + PATH, { method: 'POST', headers })).status, 403);
});

test('a session of a member ends after half a day, and who has left the organization gets no other', async () => {
  await addMember('user_cy', 'cy@acme.test', 'admin');
  const visitor = new Visitor();
  const cy = { sub: 'cy-1', email: 'cy@acme.test', email_verified: true };
  assert.equal(await arrives(visitor, cy), '../');
  gateway.clock.jump(12 * 3_600_000 - 1_000);
  assert.notEqual((await session(visitor)).data.session, null);
  gateway.clock.jump(2_000);
  assert.equal((await session(visitor)).data.session, null);
  assert.equal(await arrives(visitor, cy), '../');
  await inDatabase(gateway, [`delete from members where user_id = 'user_cy'`]);
  assert.equal(await arrives(new Visitor(), cy), '../#/sign-in?problem=not_member');
});

test('without a provider there is nothing to begin; one that is not reached is 503', async (t) => {
  const without = await startGateway(t, {});
  const headers = page(without);
  const nothing = await fetch(without.url + PATH, { method: 'POST', headers });
  assert.equal(nothing.status, 404);
  const shown = (await (await fetch(`${without.url}/console/session`, { headers })).json()) as Json;
  assert.equal(shown.data.oidc, null);
  const lost = await startGateway(t, { yaml: yaml({ issuer: 'http://127.0.0.1:9' }) });
  assert.equal((await fetch(lost.url + PATH, { method: 'POST', headers: page(lost) })).status, 503);
});

test('in a browser: there, back with a session, and out at both', { skip: NO_BROWSER }, async (t) => {
  const browser = await openBrowser();
  t.after(() => browser.close());
  const window = await browser.newPage();
  provider.person = { ...ADA, email: 'nobody@acme.test' };
  await window.goto(`${gateway.url}/console/#/keys`);
  await window.getByRole('button', { name: 'Sign in with Acme' }).click();
  await window.getByText('You are not a member').waitFor();
  provider.person = ADA;
  await window.context().clearCookies();
  await window.getByRole('button', { name: 'Sign in with Acme' }).click();
  await window.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  assert.equal(new URL(window.url()).search, '');
  await window.getByText('ada@acme.test').first().waitFor();
  await window.getByRole('button', { name: 'Sign out' }).click();
  await window.waitForURL(`${provider.issuer}/session/end?**`);
});

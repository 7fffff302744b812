/** The console keeps what a user types, what others have changed meanwhile, and secrets that are shown only once. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { builtConsole } from './page.ts';

describe('the console', { skip: NO_BROWSER }, () => {
  let gateway: Gateway;
  let browser: Browser;
  let call: ReturnType<typeof controlOf>['call'];
  const closers: (() => unknown)[] = [];
  const cleanup = { after: (close: unknown) => void closers.push(close as () => unknown) };

  before(async () => {
    gateway = await startGateway(cleanup, { consoleFolder: await builtConsole(cleanup) });
    ({ call } = controlOf(gateway));
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    for (const close of closers.reverse()) await close();
  });

  async function signedIn(place: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${gateway.url}/console/#${place}`);
    await signIn(page);
    return page;
  }

  async function signIn(page: Page): Promise<void> {
    await page.getByLabel('Management key').fill(MANAGEMENT_KEY);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  }

  async function created(route: string, body: Json): Promise<Json> {
    const { status, body: reply } = await call('POST', route, body);
    assert.ok(status < 300, JSON.stringify(reply));
    return reply.data;
  }

  const read = async (route: string): Promise<Json> => (await call('GET', route)).body.data;

  test('a rotated key shows its new secret, whole, before its page changes to the new hash', async () => {
    const { hash } = await created('/keys', { name: 'rotated' });
    const page = await signedIn(`/keys/${hash}`);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('button', { name: 'Rotate' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    const secret = (await dialog.getByRole('region', { name: 'key' }).textContent())!.trim();
    const { body } = await call('GET', '/key', undefined, secret);
    assert.ok(secret.startsWith(body.data.label.split('...')[0]));
    const [outer, copy] = await Promise.all([
      dialog.boundingBox(),
      dialog.getByRole('button', { name: 'Copy key' }).boundingBox(),
    ]);
    assert.ok(copy!.x + copy!.width <= outer!.x + outer!.width, 'the button that copies is in the dialog');
    await dialog.getByRole('button', { name: 'I have copied it' }).click();
    await page.waitForURL((url) => url.hash !== `#/keys/${hash}`);
    await page.getByRole('heading', { name: 'rotated' }).waitFor();
    await page.context().close();
  });

  test('a form sends what it shows, once, however soon and often it is submitted after a change', async () => {
    const page = await signedIn('/keys?new=key');
    await page.getByLabel('Name').fill('limited');
    await page.getByLabel('Limit in USD').evaluate(async (element) => {
      const input = element as unknown as Field;
      input.value = '7';
      input.dispatchEvent(new Event('input', { bubbles: true }));
      // The page is rendered between two events of the browser, and painted later.
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      input.form?.requestSubmit();
      input.form?.requestSubmit();
    });
    await page.getByText('It is shown only now').waitFor();
    const { body } = await call('GET', '/keys');
    const limited = body.data.filter(({ name }: Json) => name === 'limited');
    assert.deepEqual(
      limited.map(({ limit }: Json) => limit),
      [7],
    );
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.locator('main:focus').waitFor();
    const opener = page.getByRole('button', { name: 'Create a key' });
    await opener.press('Enter');
    await page.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await opener.evaluate((button) => button.matches(':focus')), true);
    await page.context().close();
  });

  test('saving a form keeps what another administrator changed after it was opened', async () => {
    const key = await created('/keys', { name: 'shared', limit: 100 });
    const workspace = await created('/workspaces', { name: 'Shared', slug: 'shared' });
    const limit = { limit_usd: 9, reset_interval: 'daily' };
    const guardrail = await created('/guardrails', { name: 'Shared', ...limit });
    const byok = await created('/byok', { provider: 'openai', key: 'sk-abcdefgh', name: 'Shared' });
    const page = await signedIn('/keys');
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    const saves = async (route: string, where: string, theirs: Json, name = 'Name') => {
      await page.goto(`${gateway.url}/console/#${where}`);
      await page.getByRole('button', { name: /^Edit/ }).first().click();
      assert.equal((await call('PATCH', route, theirs)).status, 200);
      await page.getByRole('dialog').getByLabel(name).first().fill('Mine');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      const now = await read(route);
      assert.deepEqual(Object.fromEntries(['name', ...Object.keys(theirs)].map((member) => [member, now[member]])), {
        name: 'Mine',
        ...theirs,
      });
    };
    await saves(...both(`/keys/${key.hash}`), { limit: 1, limit_reset: 'daily', disabled: true });
    await saves(...both(`/workspaces/${workspace.id}`), { slug: 'other', is_observability_io_logging_enabled: true });
    await saves(...both(`/guardrails/${guardrail.id}`), {
      limit_usd: 1,
      reset_interval: 'weekly',
      ignored_models: ['a/b'],
    });
    await saves(`/byok/${byok.id}`, '/byok', { is_fallback: true, allowed_models: ['openai/gpt-5'] });
    await page.setViewportSize({ width: 390, height: 844 });
    // A narrow window shows the name too.
    await page.getByRole('table').getByText('Mine', { exact: true }).waitFor();

    const budgets = `/workspaces/${workspace.id}/budgets`;
    await page.goto(`${gateway.url}/console/#/workspaces/${workspace.id}`);
    await page.getByRole('button', { name: 'Set the daily budget' }).click();
    await call('PUT', `${budgets}/weekly`, { limit_usd: 9, include_byok_in_budgets: true });
    await page.getByRole('dialog').getByLabel('Limit in USD').fill('2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    const { body } = await call('GET', budgets);
    assert.deepEqual([body.data.length, body.include_byok_in_budgets], [2, true]);
    await page.context().close();
  });

  test('an emptied field of a destination means its default', async () => {
    const { id } = await created('/observability/destinations', {
      ...{ name: 'Store', type: 's3', enabled: false },
      config: {
        bucketName: 'records',
        region: 'eu-west-1',
        pathTemplate: 'a/b',
        accessKeyId: 'k',
        secretAccessKey: 's',
      },
    });
    const page = await signedIn(`/destinations/${id}`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('dialog').getByLabel('Path template').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    const { config } = await read(`/observability/destinations/${id}`);
    assert.equal(config.pathTemplate, '{prefix}/{date}');
    await page.context().close();
  });

  test('a session that ends leaves the form as it is, and signing out hides the page in every window', async () => {
    const page = await signedIn('/keys?new=key');
    const dialog = page.getByRole('dialog', { name: 'Create a key' });
    await dialog.getByLabel('Name').fill('typed before');
    await dialog.getByLabel('Limit in USD').fill('3');
    await page.context().clearCookies();
    await dialog.getByLabel('Limit in USD').press('Enter');
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await signIn(page);
    await dialog.locator('input:focus').waitFor();
    assert.equal(await dialog.locator('input:focus').inputValue(), '3');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByText('It is shown only now').waitFor();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('link', { name: 'typed before' }).waitFor();
    assert.equal(await page.title(), 'Keys · Gatehouse');

    const other = await page.context().newPage();
    await other.goto(`${gateway.url}/console/#/keys`);
    await other.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Management key').waitFor();
    assert.equal(await page.getByText('typed before').count(), 0);
    await page.context().close();
  });

  test('a thing whose name cannot be typed can be deleted, and an address that cannot be decoded is a page', async () => {
    const { hash } = await created('/keys', { name: 'two\nlines \u200b \u202e' });
    const page = await signedIn('/keys/%E0%A4');
    await page.getByText('There is no inference key with this hash.').waitFor();
    await page.goto(`${gateway.url}/console/#/keys/${hash}`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByLabel('Type two lines to confirm').fill('two lines');
    await page.getByRole('button', { name: 'Delete the key' }).click();
    await page.waitForURL((url) => url.hash === '#/keys');
    assert.equal((await call('GET', `/keys/${hash}`)).status, 404);
    await page.context().close();
  });

  test('a refusal is shown at its field, which gets the focus, until the form is sent again', async () => {
    const page = await signedIn('/keys?new=key');
    const field = page.getByLabel('Limit in USD');
    await page.getByLabel('Name').fill('refused');
    await field.fill('1e15');
    await page.keyboard.press('Enter');
    const alert = page.getByRole('dialog').getByRole('alert');
    assert.equal(await alert.textContent(), 'limit must be at most 1000000000');
    await page.locator('input[aria-invalid=true]:focus').waitFor();
    assert.equal(
      await field.getAttribute('aria-describedby'),
      `${await alert.getAttribute('id')} ${await field.getAttribute('id')}-hint`,
    );
    assert.equal(await page.getByLabel('Name').inputValue(), 'refused');
    await field.fill('1');
    await page.getByLabel('Partner secret').fill('short');
    await page.keyboard.press('Enter');
    await page.getByText('external.user must not be empty').waitFor();
    assert.equal(await alert.count(), 1);
    assert.equal(await field.getAttribute('aria-invalid'), null);
    await page.context().close();
  });

  test('long names and patterns stay within a narrow window', async () => {
    const long = `${'long words '.repeat(5)}${'x'.repeat(120)}`;
    const { hash } = await created('/keys', { name: long });
    const { id } = await created('/guardrails', {
      name: long,
      content_filters: [{ pattern: 'x'.repeat(200), action: 'block' }],
    });
    const page = await signedIn(`/keys/${hash}`);
    await page.setViewportSize({ width: 390, height: 844 });
    const beyond = () =>
      page.evaluate(
        `Math.max(...[...document.querySelectorAll('html, dialog')].map((box) => box.scrollWidth - box.clientWidth))`,
      );
    for (const action of ['Edit', 'Rotate', 'Disable', 'Delete']) {
      await page.getByRole('button', { name: action, exact: true }).click();
      await page.getByRole('dialog').waitFor();
      assert.equal(await beyond(), 0, action);
      await page.keyboard.press('Escape');
    }
    await page.goto(`${gateway.url}/console/#/guardrails/${id}`);
    await page.getByText('block xxx').waitFor();
    assert.equal(await beyond(), 0);
    await page.context().close();
  });

  test('a prompt that no model got is offered again, and one that is written while images are read stays', async () => {
    const page = await signedIn('/playground?model=test/one');
    await page.addInitScript({ content: READ_WHEN_RELEASED });
    await page.getByLabel('Or paste an inference key').fill(INFERENCE_KEY);
    await page.getByRole('button', { name: 'Use this key' }).click();
    const message = page.getByRole('textbox', { name: 'Message' });
    await page.route('**/chat/completions', (route) => route.abort());
    await message.fill('a long prompt');
    await message.press('Enter');
    await page.getByText('The gateway cannot be reached').waitFor();
    await page.getByRole('button', { name: 'Send' }).and(page.locator(':enabled')).waitFor();
    assert.equal(await message.inputValue(), 'a long prompt');

    await page.reload();
    const images = page.locator('input[type=file]');
    await images.setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('image') });
    await message.fill('written meanwhile');
    await page.evaluate('release()');
    await page.getByRole('img', { name: 'Attached 1' }).waitFor();
    assert.equal(await message.inputValue(), 'written meanwhile');
    assert.equal(await images.inputValue(), '', 'the same file can be chosen again');
    await page.context().close();
  });

  test('a filter can have spaces within', async () => {
    const page = await signedIn('/requests');
    await page.getByLabel('End user').pressSequentially('Ada Lovelace ');
    await page.waitForURL((url) => url.hash === '#/requests?external_user=Ada+Lovelace');
    assert.equal(await page.getByLabel('End user').inputValue(), 'Ada Lovelace ');
    await page.context().close();
  });

  test('choices have more than a page of things, and a page behind the last one says so', async () => {
    for (let at = 0; at < 101; at++) await created('/workspaces', { name: `Team ${at}`, slug: `team-${at}` });
    const page = await signedIn('/keys');
    await page.getByLabel('Workspace').selectOption({ label: 'Team 100' });
    await page.getByText('No keys here').waitFor();
    // As if a row had been inserted before the second page was read.
    await page.route(/workspaces\?.*offset=100/, (route) =>
      route.continue({ url: route.request().url().replace('offset=100', 'offset=99') }),
    );
    await page.reload();
    await page.getByRole('option', { name: 'Team 100' }).waitFor({ state: 'attached' });
    const names = await page.getByRole('option', { name: 'Team' }).allTextContents();
    assert.deepEqual(names, [...new Set(names)]);
    assert.equal(names.length, 101);
    await page.goto(`${gateway.url}/console/#/workspaces?offset=1000`);
    await page.getByText('Nothing on this page').waitFor();
    await page.getByRole('button', { name: 'Previous' }).waitFor();
    await page.context().close();
  });
});

/** Images are read when the page calls `release`. */
const READ_WHEN_RELEASED = `const read = FileReader.prototype.readAsDataURL;
FileReader.prototype.readAsDataURL = function (file) { globalThis.release = () => read.call(this, file); };`;

/** The route of a thing is that of its page. */
const both = (route: string) => [route, route] as const;

/** Of the browser: what the test uses of an input. */
interface Field extends EventTarget {
  value: string;
  form: { requestSubmit(): void } | null;
}

/**
 * The console as people see it: a real browser and a real gateway, from the link of the first start on. One browser and one
 * gateway for the file; each test has a window of its own.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { type GatewayProcess, gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

/** Destinations may be on this machine. */
const YAML = { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } };
const NO_KEYS = { GATEHOUSE_MANAGEMENT_KEY: '', GATEHOUSE_INFERENCE_KEY: '' };
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
/** The rules that colours and the width of the window can break. */
const LOOKS = ['color-contrast', 'target-size', 'scrollable-region-focusable'];
/** The sum of layout shifts that web.dev/cls calls good. */
const GOOD_SHIFT = 0.1;
const FIRST_PAGE_BYTES = 120 * 1024;
const WIDE = { width: 1280, height: 860 };
const NARROW = { width: 390, height: 844 };

/** Every page of the navigation. */
const PAGES = [
  ['#/', 'Overview'],
  ['#/requests', 'Requests'],
  ['#/audit', 'Audit log'],
  ['#/destinations', 'Destinations'],
  ['#/destinations?new=destination', 'Destinations'],
  ['#/system', 'System'],
  ['#/playground?model=simulated/echo,simulated/script', 'Playground'],
  ['#/models', 'Models'],
  ['#/models/simulated%2Fecho', 'Simulated: Echo'],
  ['#/presets', 'Presets'],
  ['#/presets?new=preset', 'Presets'],
  ['#/batches', 'Batches'],
  ['#/interns', 'Interns'],
  ['#/files', 'Files'],
  ['#/keys', 'Keys'],
  ['#/keys?new=key', 'Keys'],
  ['#/guardrails', 'Guardrails'],
  ['#/guardrails?new=guardrail', 'Guardrails'],
  ['#/workspaces', 'Workspaces'],
  ['#/members', 'Members'],
  ['#/byok?new=byok', 'BYOK credentials'],
  ['#/vault', 'Vault'],
] as const;
const COUNT_SHIFTS = `globalThis.shift = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.shift += value;
}).observe({ type: 'layout-shift', buffered: true })`;
const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;

describe('the console', { skip: NO_BROWSER }, () => {
  let browser: Browser;
  let gateway: GatewayProcess;
  let context: BrowserContext;
  const closers: (() => unknown)[] = [];
  const cleanup = { after: (close: unknown) => void closers.push(close as () => unknown) };
  /** What the browser complained about: errors of scripts, refused content. */
  const complaints: string[] = [];
  /** Requests to any other host. */
  const outside: string[] = [];

  before(async () => {
    const home = await gatewayHome(cleanup, false);
    [browser, gateway] = await Promise.all([
      openBrowser(),
      startGatewayProcess(cleanup, { home, env: NO_KEYS, yaml: YAML }),
    ]);
    context = await browser.newContext({ viewport: WIDE });
    context.on('page', (page) => watch(page));
  });
  after(async () => {
    await browser?.close();
    for (const close of closers.reverse()) await close();
  });

  function watch(page: Page): void {
    page.on('pageerror', (error) => complaints.push(String(error.stack)));
    page.on('console', (message) => {
      // A refused request is one that a test asked for.
      if (message.type() === 'error' && !message.text().includes('Failed to load resource'))
        complaints.push(message.text());
    });
    page.on('request', (request) => {
      if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(`${gateway.url}/`))
        outside.push(request.url());
    });
  }

  async function open(place: string): Promise<Page> {
    const page = await context.newPage();
    await page.goto(`${gateway.url}/console/${place}`);
    return page;
  }

  async function findings(page: Page, rules: readonly string[] = RULES): Promise<string[]> {
    if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
    return page.evaluate(async (runOnly) => {
      const { axe } = globalThis as unknown as { axe: { run(place: unknown, options: object): Promise<AxeResult> } };
      const { violations } = await axe.run('body', { runOnly: [...runOnly] });
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
    }, rules);
  }

  test('the link of the first start signs in, once, and its code leaves the address', async () => {
    const { file } = await gateway.logged('one-time link to the console written');
    const link = readFileSync(String(file), 'utf8').trim();
    const page = await context.newPage();
    await page.goto(link);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.ok(!page.url().includes('code='));
    assert.ok(!gateway.output.includes(link.split('code=')[1] ?? ''));
    const other = await browser.newContext();
    const late = await other.newPage();
    await late.goto(link);
    assert.match((await late.getByRole('alert').textContent()) ?? '', /already used or has expired/);
    await other.close();
    await page.close();
  });

  test('the first page is small, and asks no other host', async () => {
    const fresh = await browser.newContext({ storageState: await context.storageState() });
    const page = await fresh.newPage();
    let bytes = 0;
    const sizes: Promise<unknown>[] = [];
    page.on('response', (response) => {
      sizes.push(
        response
          .request()
          .sizes()
          .then((size) => {
            bytes += size.responseBodySize;
          }),
      );
    });
    await page.goto(gateway.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.waitForLoadState('networkidle');
    await Promise.all(sizes);
    assert.ok(page.url().startsWith(`${gateway.url}/console/`), page.url());
    assert.ok(bytes > 10_000 && bytes < FIRST_PAGE_BYTES, `${bytes} bytes`);
    await fresh.close();
  });

  test('every page is accessible, light and dark, wide and narrow, and stays in place while it loads', async () => {
    const page = await context.newPage();
    await page.addInitScript(COUNT_SHIFTS);
    await page.goto(`${gateway.url}/console/`);
    for (const [scheme, viewport, rules] of [
      ['light', WIDE, RULES],
      ['dark', NARROW, LOOKS],
    ] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize(viewport);
      for (const [place, title] of PAGES) {
        await page.evaluate(() => Object.assign(globalThis, { shift: 0 }));
        await page.goto(`${gateway.url}/console/${place}`);
        await page.getByRole('heading', { level: 1, name: title }).waitFor();
        await page.waitForLoadState('networkidle');
        await page.locator('.waiting').first().waitFor({ state: 'detached' });
        const shift = await page.evaluate(() => (globalThis as { shift?: number }).shift ?? 0);
        assert.ok(shift < GOOD_SHIFT, `${place} ${scheme} moved by ${shift}`);
        assert.deepEqual(await findings(page, rules), [], `${place} ${scheme}`);
        const wider = await page.evaluate(
          'document.documentElement.scrollWidth > document.documentElement.clientWidth',
        );
        assert.equal(wider, false, `${place} is wider than the window of ${viewport.width}`);
        assert.match(await page.title(), /· Gatehouse$/);
      }
    }
    await page.close();
  });

  test('a newcomer streams an answer, limits a key, blocks a text, and finds the blocked request', async () => {
    const page = await open('#/playground?model=simulated/echo');
    await page.getByRole('textbox', { name: 'Message' }).fill(`Hello from the console ${HOSTILE}`);
    await page.keyboard.press('Enter');
    const answer = page.locator('.answered').first();
    await answer.getByText('Hello from the console').waitFor();
    await answer.getByRole('link', { name: 'Details' }).waitFor();
    await answer.getByText('$').first().waitFor();
    assert.equal(await page.locator('.turns img, .turns script').count(), 0);
    assert.match(await page.title(), /^Playground/);

    await page.goto(`${gateway.url}/console/#/keys`);
    await page.getByRole('button', { name: 'Create a key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(HOSTILE);
    await dialog.getByLabel('Limit in USD').fill('1.5');
    await dialog.getByLabel('Limit resets').selectOption('daily');
    await dialog.getByRole('button', { name: 'Create' }).click();
    const secret = (await dialog.locator('code').textContent()) ?? '';
    assert.match(secret, /^sk-/);
    await dialog.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('link', { name: HOSTILE }).click();
    await page.getByText('$1.50').first().waitFor();
    const hash = decodeURIComponent(page.url()).split('/keys/')[1] ?? '';

    await page.goto(`${gateway.url}/console/#/guardrails?new=guardrail`);
    await dialog.getByRole('textbox', { name: 'Name' }).fill('No mail addresses');
    await dialog.getByLabel('E-mail addresses').selectOption('block');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: 'No mail addresses' }).waitFor();
    await page.getByLabel('As a user would write it').fill('Write to ada@example.test');
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByText('block email at 9').waitFor();
    await page.getByLabel('Add a key').selectOption(hash);
    await page.getByRole('button', { name: 'Assign the key' }).click();
    await page.getByLabel('Add a member').selectOption({ index: 1 });
    await page.getByRole('button', { name: 'Assign the member' }).click();
    await page.getByRole('region', { name: 'Members that it applies to' }).getByText('user_').waitFor();
    await page.getByRole('link', { name: HOSTILE }).waitFor();

    const refused = await fetch(`${gateway.api}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'simulated/echo', messages: [{ role: 'user', content: 'mail ada@example.test' }] }),
    });
    assert.equal(refused.status, 403);
    await page.goto(`${gateway.url}/console/#/requests?outcome=guarded`);
    await page.locator('a.row-link').first().click();
    await page.getByText('a guardrail of this key blocks the request: email').waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    assert.match(page.url(), /outcome=guarded/);
    await page.close();
  });

  test('a preset is made, changed and used, an earlier version comes back, and it is deleted', async () => {
    const page = await open('#/presets?new=preset');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('support');
    await dialog.getByLabel('Format of the settings').selectOption('messages');
    await dialog.getByLabel('Model').fill('simulated/echo');
    await dialog.getByLabel('System prompt').fill(`Be brief. ${HOSTILE}`);
    await dialog.getByLabel('More settings').fill('{"stop_sequences": 7}');
    await dialog.getByRole('button', { name: 'Create' }).click();
    assert.match((await dialog.getByRole('alert').textContent()) ?? '', /stop_sequences/);
    await dialog.getByLabel('More settings').fill('{"stop_sequences": ["x"]}');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: 'support' }).waitFor();
    await page.getByText(HOSTILE).waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Longest answer').fill('50');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Version 2' }).waitFor();
    await page.getByText('"stop_sequences"').waitFor();
    assert.deepEqual(await findings(page), []);
    await page.getByRole('link', { name: '1', exact: true }).click();
    await page.getByRole('button', { name: 'Use these settings again' }).click();
    await page.getByRole('heading', { name: 'Version 3' }).waitFor();
    await page.getByRole('link', { name: 'Use in the playground' }).click();
    await page.getByRole('textbox', { name: 'Message' }).fill('by its name');
    await page.keyboard.press('Enter');
    await page.locator('.answered').getByText('by its name').waitFor();
    await page.getByRole('link', { name: 'Details' }).click();
    await page.getByRole('link', { name: 'support' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByText('All its versions are lost').waitFor();
    await dialog.getByLabel(/to confirm/).fill('support');
    await dialog.getByRole('button', { name: 'Delete the preset' }).click();
    await page.getByText('No presets').waitFor();
    await page.close();
  });

  test('a destination is added from the form of its type, tested, filtered and deleted', async (t) => {
    const received: string[] = [];
    const system = createServer((request, response) => {
      received.push(String(request.headers['x-token']));
      request.resume().on('end', () => response.writeHead(request.url === '/down' ? 503 : 200).end());
    });
    await new Promise<void>((resolve) => void system.listen(0, '127.0.0.1', resolve));
    t.after(() => void system.close());
    const { port } = system.address() as AddressInfo;
    const page = await open('#/destinations?new=destination');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill(HOSTILE);
    await dialog.getByLabel('Type').selectOption('webhook');
    await dialog.getByLabel('URL').fill(`http://127.0.0.1:${port}/down`);
    await dialog.getByRole('button', { name: 'Add a header' }).click();
    await dialog.getByLabel('Name of header 1').fill('x-token');
    await dialog.getByLabel('Value of header 1').fill('canary-of-a-header');
    await dialog.getByRole('button', { name: 'Add a rule' }).click();
    await dialog.getByLabel('Value 1.1').fill(HOSTILE);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('answered with status 503').waitFor();
    assert.deepEqual(await findings(page), []);
    await dialog.getByLabel('URL').fill(`http://127.0.0.1:${port}/up`);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
    await page.getByText('does not forward its generations').waitFor();
    await page.getByRole('button', { name: 'Turn forwarding on' }).click();
    await page.getByText('does not forward').waitFor({ state: 'detached' });
    await page.getByText(`Model is ${HOSTILE}`).waitFor();

    await page.getByRole('button', { name: 'Edit' }).click();
    assert.ok(!(await page.content()).includes('canary-of-a'));
    await dialog.getByLabel('Method').selectOption('PUT');
    await dialog.getByLabel('Privacy').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('PUT', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await page.getByText('accepted the test event').waitFor();
    assert.deepEqual(new Set(received), new Set(['canary-of-a-header']));
    assert.deepEqual(await findings(page), []);

    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByText('records that were delivered stay').waitFor();
    await dialog.getByLabel(/to confirm/).fill(HOSTILE);
    await dialog.getByRole('button', { name: 'Delete the destination' }).click();
    await page.getByText('No destinations').waitFor();
    await page.close();
  });

  test('a refused change shows the message of the gateway, and tables are used by keyboard', async () => {
    const page = await open('#/byok?new=byok');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Provider' }).fill('nobody');
    await dialog.getByLabel('Key', { exact: true }).fill('secret');
    await dialog.getByRole('button', { name: 'Add' }).click();
    assert.match((await dialog.getByRole('alert').textContent()) ?? '', /provider/);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    // The address is the dialog's own until a moment after that.
    await page.waitForURL((url) => !url.hash.includes('new='));
    await page.goto(`${gateway.url}/console/#/byok?new=byok`);
    await dialog.getByRole('combobox', { name: 'Provider' }).fill('openai');
    await dialog.getByLabel('Key', { exact: true }).fill('sk-own-1234567890');
    await dialog.getByLabel('Only for these models').fill('openai/gpt-4o');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('button', { name: 'Edit' }).click();
    assert.equal(await dialog.getByLabel('New key').inputValue(), '');
    assert.equal(await dialog.getByLabel('Only for these models').inputValue(), 'openai/gpt-4o');
    await dialog.getByLabel('Only for these models').fill('');
    await dialog.getByLabel('Name').fill('renamed');
    await dialog.getByLabel('Data retention of the account').selectOption('true');
    assert.deepEqual(await findings(page), []);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('renamed').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    assert.equal(await dialog.getByLabel('Only for these models').inputValue(), '');
    assert.equal(await dialog.getByLabel('Data retention of the account').inputValue(), 'true');
    await page.keyboard.press('Escape');
    await page.goto(`${gateway.url}/console/#/requests`);
    const rows = page.locator('a.row-link');
    await rows.nth(1).waitFor();
    await rows.first().focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await rows.nth(1).evaluate((row) => row.matches(':focus')), true);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Request', exact: true }).waitFor();
    await page.close();
  });

  test('the attempts of a request are bars on one axis, and a list in words', async () => {
    const page = await open('#/requests');
    const request = await page.locator('a.row-link').first().getAttribute('href');
    const attempt = { provider_name: 'Acme', model_permaslug: 'acme/large', status: 200 };
    await page.route(/\/generation\?id=/, async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      body.data.latency = 100;
      body.data.provider_responses = [
        { ...attempt, status: 529, latency: 400, started: 0, ended: 'overloaded' },
        { ...attempt, status: null, latency: 300, started: 400, ended: 'given_up' },
        { ...attempt, provider_name: 'Other', latency: 600, started: 500 },
      ];
      await route.fulfill({ response, json: body });
    });
    await page.addInitScript(COUNT_SHIFTS);
    for (const [scheme, viewport, rules] of [
      ['light', WIDE, RULES],
      ['dark', NARROW, LOOKS],
    ] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize(viewport);
      await page.goto(`${gateway.url}/console/${request}`);
      const attempts = page.locator('.timeline > li');
      await attempts.nth(2).waitFor();
      const words = await attempts.locator('p').allTextContents();
      assert.deepEqual(words, [
        'Began after 0 ms, took 400 ms. The provider was overloaded.',
        'Began after 400 ms, took 300 ms. It was given up: the client had left, or another attempt was faster.',
        'Began after 500 ms, took 600 ms, first token after 100 ms.',
      ]);
      const bars = await page
        .locator('.timeline rect.waiting-part')
        .evaluateAll((all) =>
          all.map((bar) => bar.getBoundingClientRect()).map(({ left, right }) => ({ left, right })),
        );
      assert.ok(Math.abs(bars[0]!.right - bars[1]!.left) < 1 && bars[2]!.left < bars[1]!.right);
      assert.deepEqual(await findings(page, rules), [], scheme);
      const wider = await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
      assert.equal(wider, false, scheme);
      const shift = await page.evaluate(() => (globalThis as { shift?: number }).shift ?? 0);
      assert.ok(shift < GOOD_SHIFT, `${scheme} moved by ${shift}`);
    }
    await page.close();
  });

  test('the sign-in page says what is wrong with a key, and is accessible', async () => {
    const stranger = await browser.newContext({ viewport: NARROW });
    const page = await stranger.newPage();
    await page.goto(`${gateway.url}/console/`);
    await page.getByLabel('Management key').fill('sk-unknown');
    await page.keyboard.press('Enter');
    assert.match((await page.getByRole('alert').textContent()) ?? '', /not known/);
    assert.deepEqual(await findings(page), []);
    await stranger.close();
  });

  test('everything works below a path prefix, behind a proxy that does not announce it', async (t) => {
    const proxy = createServer((request, response) => {
      const target = new URL((request.url ?? '').replace(/^\/llm/, ''), gateway.url);
      const { host: _, ...headers } = request.headers;
      const passed = forward(target, { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      request.pipe(passed);
    });
    await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
    t.after(() => void proxy.close());
    t.after(() => proxy.closeAllConnections());
    const { port } = proxy.address() as AddressInfo;
    const keys = readFileSync(`${gateway.home.dataDir}/first-keys.txt`, 'utf8');
    const elsewhere = await browser.newContext();
    const page = await elsewhere.newPage();
    await page.goto(`http://127.0.0.1:${port}/llm/`, { waitUntil: 'load' });
    await page.getByLabel('Management key').fill(/management key: (\S+)/.exec(keys)?.[1] ?? '');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/llm/console/');
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByText('First inference key').waitFor();
    await elsewhere.close();
  });

  test('files are compressed, kept for a year by their names, and cannot be framed or extended', async () => {
    const page = await fetch(`${gateway.url}/console/`, { headers: { 'accept-encoding': 'br' } });
    const text = await page.text();
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
    assert.ok(!policy.includes('unsafe') && policy.includes("frame-ancestors 'none'"));
    assert.equal(page.headers.get('cache-control'), 'no-cache');
    assert.ok(!/<script(?![^>]* src=)/.test(text));
    const names = [...text.matchAll(/(?:src|href)="([\w-]+\.(?:js|css))"/g)].map(([, name]) => name);
    assert.ok(names.length >= 2);
    for (const name of names) {
      for (const coding of ['br', 'gzip']) {
        const answer = await fetch(`${gateway.url}/console/${name}`, { headers: { 'accept-encoding': coding } });
        assert.equal(answer.headers.get('content-encoding'), coding);
        assert.match(answer.headers.get('cache-control') ?? '', /immutable/);
        await answer.arrayBuffer();
      }
      assert.equal(
        (await fetch(`${gateway.url}/console/${name}`, { headers: { 'accept-encoding': 'identity' } })).headers.get(
          'content-encoding',
        ),
        null,
      );
    }
    for (const outside of ['../main.js', '..%2fmain.js', 'main.js', 'index.html.br']) {
      assert.equal((await fetch(`${gateway.url}/console/${outside}`)).status, 404, outside);
    }
  });

  test('signing out leads to the sign-in page, in every window', async () => {
    const page = await open('#/keys');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Management key').waitFor();
    await page.goto(`${gateway.url}/console/#/audit`);
    await page.getByLabel('Management key').waitFor();
    await page.close();
  });

  test('nothing in the browser was refused or failed, and no other host was asked', () => {
    assert.deepEqual(complaints, []);
    assert.deepEqual(outside, []);
  });
});

interface AxeResult {
  violations: { id: string; nodes: { html: string }[] }[];
}

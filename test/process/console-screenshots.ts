/**
 * Pictures of every page of the console for a person to look at: `node test/process/console-screenshots.ts FOLDER [TEXT]`. Light and
 * dark, wide and narrow, full of things and empty; with TEXT only those whose name contains it.
 */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { openBrowser } from '../../src/testing/process/browser.ts';
import { gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

const [folder, only = ''] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the folder for the pictures');
mkdirSync(folder, { recursive: true });

const MANAGEMENT_KEY = `sk-svc-mgmt-pictures-${'m'.repeat(32)}`;
const INFERENCE_KEY = `sk-svc-inf-pictures-${'i'.repeat(32)}`;
const YAML = { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } };
const SIZES = { wide: { width: 1280, height: 860 }, narrow: { width: 390, height: 844 } };
const LONG = 'A name that is much longer than anybody would expect, with-parts-that-do-not-break-anywhere-at-all';

const closers: (() => unknown)[] = [];
const cleanup = { after: (close: unknown) => void closers.push(close as () => unknown) };
const home = await gatewayHome(cleanup, false);
const gateway = await startGatewayProcess(cleanup, {
  home,
  env: { GATEHOUSE_MANAGEMENT_KEY: MANAGEMENT_KEY, GATEHOUSE_INFERENCE_KEY: INFERENCE_KEY },
  yaml: YAML,
});
const browser = await openBrowser();

async function call(
  method: string,
  place: string,
  body?: object,
  key = MANAGEMENT_KEY,
): Promise<Record<string, never>> {
  const reply = await fetch(`${gateway.api}${place}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (reply.status >= 500) throw new Error(`${method} ${place}: ${reply.status} ${text}`);
  return text.startsWith('{') ? JSON.parse(text) : {};
}

const chat = (content: string, key = INFERENCE_KEY, more: object = {}) =>
  call('POST', '/chat/completions', { model: 'simulated/echo', messages: [{ role: 'user', content }], ...more }, key);

/** Some of everything. Returns the places of single things. */
async function fill(): Promise<Record<string, string>> {
  await call('PATCH', '/workspaces/default', {
    is_observability_broadcast_enabled: true,
    is_observability_io_logging_enabled: true,
  });
  const { data: workspace } = await call('POST', '/workspaces', { name: LONG, slug: 'long' });
  const made = (await call('POST', '/keys', { name: LONG, limit: 5, limit_reset: 'daily' })) as { key?: string };
  const { data: key } = (await call('GET', '/keys')) as unknown as { data: { hash: string }[] };
  const filters = [{ slug: 'email', action: 'block' }];
  const guardrail = (await call('POST', '/guardrails', {
    name: 'No mail addresses',
    content_filter_builtins: filters,
  })) as { data?: { id: string } };
  await call('POST', `/guardrails/${guardrail.data?.id}/assignments/keys`, { key_hashes: [key[0]!.hash] });
  await call('POST', '/byok', { provider: 'openai', key: 'sk-own-1234567890', name: LONG });
  const destination = (await call('POST', '/observability/destinations', {
    name: LONG,
    type: 'webhook',
    enabled: false,
    config: { url: 'https://hooks.example.com/a/very/long/path/of/a/webhook/that/has/to/wrap' },
  })) as { data?: { id: string } };
  for (let count = 0; count < 12; count++) await chat(`Request number ${count}`);
  await chat('write to ada@example.test', made.key);
  await chat('unknown', INFERENCE_KEY, { model: 'simulated/nothing' });
  await call('POST', '/batches', { input_file_id: 'none' }, INFERENCE_KEY);
  const form = new FormData();
  form.set('purpose', 'user_data');
  form.set('file', new Blob(['text of a file']), `${LONG}.txt`);
  await fetch(`${gateway.api}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}` },
    body: form,
  });
  const settings = { model: 'simulated/echo', temperature: 0.2, provider: { zdr: true } };
  const system = 'Answer in two sentences. '.repeat(20);
  for (const content of [LONG, system]) {
    const messages = [{ role: 'system', content }];
    await call('POST', '/presets/support/chat/completions', { ...settings, messages }, INFERENCE_KEY);
  }
  const listed = (await call('GET', '/generations?limit=20')) as unknown as { data: { id: string }[] };
  return {
    request: `#/requests/${listed.data.at(-1)?.id}`,
    blocked: `#/requests/${listed.data[0]?.id}`,
    key: `#/keys/${key[0]!.hash}`,
    guardrail: `#/guardrails/${guardrail.data?.id}`,
    destination: `#/destinations/${destination.data?.id}`,
    preset: '#/presets/support',
    'preset-version': '#/presets/support?version=1',
    workspace: `#/workspaces/${(workspace as unknown as { id: string } | undefined)?.id}`,
  };
}

const PLACES: Record<string, string> = {
  overview: '#/',
  requests: '#/requests',
  audit: '#/audit',
  destinations: '#/destinations',
  'destination-new': '#/destinations?new=destination',
  system: '#/system',
  playground: '#/playground?model=simulated/echo,simulated/script',
  models: '#/models',
  model: '#/models/simulated%2Fecho',
  presets: '#/presets',
  'preset-new': '#/presets?new=preset',
  batches: '#/batches',
  interns: '#/interns',
  files: '#/files',
  keys: '#/keys',
  'key-new': '#/keys?new=key',
  guardrails: '#/guardrails',
  'guardrail-new': '#/guardrails?new=guardrail',
  workspaces: '#/workspaces',
  members: '#/members',
  byok: '#/byok',
  vault: '#/vault',
};

async function takeAll(page: Page, places: Record<string, string>, kind: string): Promise<void> {
  for (const [name, place] of Object.entries(places)) {
    if (!`${kind}-${name}`.includes(only)) continue;
    for (const scheme of ['light', 'dark'] as const) {
      for (const [size, viewport] of Object.entries(SIZES)) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize(viewport);
        await page.goto(`${gateway.url}/console/${place}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForLoadState('networkidle');
        await page.locator('.waiting').first().waitFor({ state: 'detached' });
        await page.screenshot({ path: path.join(folder!, `${kind}-${name}-${scheme}-${size}.png`), fullPage: true });
      }
    }
  }
}

try {
  const page = await browser.newPage();
  await takeAll(page, { 'sign-in': '#/' }, 'first');
  await page.goto(`${gateway.url}/console/`);
  await page.getByLabel('Management key').fill(MANAGEMENT_KEY);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await takeAll(page, PLACES, 'empty');
  const single = await fill();
  await page.goto(`${gateway.url}/console/#/playground`);
  await page.getByLabel('Or paste an inference key').fill(INFERENCE_KEY);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  await takeAll(page, { ...PLACES, ...single }, 'full');
} finally {
  await browser.close();
  for (const close of closers.reverse()) await close();
}

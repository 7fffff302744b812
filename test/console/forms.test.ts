/** What the interface can change, the console's forms can; in a real browser, saving one changes nothing else. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { builtConsole } from './page.ts';

const ROOT = path.join(import.meta.dirname, '../..');

/** The files of the forms, by the schema of their requests. */
const FORMS = {
  CreateKey: ['keys/form.tsx', 'ui/rate-limits.tsx'],
  UpdateKey: ['keys/form.tsx', 'ui/rate-limits.tsx', 'pages/keys.tsx'],
  CreateByokKey: ['byok/dialogs.tsx', 'ui/workspace-choice.tsx', 'pages/byok.tsx'],
  UpdateByokKey: ['byok/dialogs.tsx', 'pages/byok.tsx'],
  CreateGuardrail: ['guardrails/edit.tsx', 'guardrails/rules-form.tsx', 'ui/workspace-choice.tsx'],
  UpdateGuardrail: ['guardrails/edit.tsx', 'guardrails/rules-form.tsx'],
  UpdateWorkspace: ['workspaces/edit.tsx', 'ui/rate-limits.tsx'],
  UpsertWorkspaceBudget: ['workspaces/edit.tsx'],
  CreateDestination: ['destinations/edit.tsx'],
  UpdateDestination: ['destinations/edit.tsx'],
};
/** Aliases of members that the forms have, and a setting without effect. */
const LEFT_OUT = /^(?:(?:enforce_zdr|allow_safety_retention)_vendor_[a-d]|is_data_discount_logging_enabled)$/;

test('every writable member of keys, guardrails, workspaces, budgets and destinations is in a form', () => {
  const { schemas } = (JSON.parse(readFileSync(path.join(ROOT, 'openapi.json'), 'utf8')) as Json).components;
  const missing = Object.entries(FORMS).flatMap(([schema, files]) => {
    const text = files.map((file) => readFileSync(path.join(ROOT, 'console', file), 'utf8')).join('\n');
    const members = Object.keys(schemas[schema].properties);
    assert.ok(members.length > 1, schema);
    return members.filter((member) => !LEFT_OUT.test(member) && !new RegExp(`\\b${member}\\b`).test(text));
  });
  assert.deepEqual(missing, []);
  assert.ok(readdirSync(path.join(ROOT, 'console')).includes('keys'));
});

test('saving a form changes what was changed in it and nothing else', {
  skip: NO_BROWSER,
}, async (t) => {
  const gateway = await startGateway(t, { consoleFolder: await builtConsole(t) });
  const { call } = controlOf(gateway);
  const created = async (route: string, body: Json): Promise<Json> => {
    const { status, body: reply } = await call('POST', route, body);
    assert.ok(status < 300, JSON.stringify(reply));
    return reply.data;
  };
  const read = async (route: string): Promise<Json> => {
    const { updated_at: _, ...rest } = (await call('GET', route)).body.data;
    return rest;
  };
  const rate_limits = { requests_per_day: 500, tokens_per_hour: 9_000 };
  const key = await created('/keys', { name: 'Daily', rate_limits, limit: 5 });
  const guardrail = await created('/guardrails', {
    ...{ name: 'Strict', enforce_zdr_anthropic: true, enable_paid_model_training: false, ignored_models: ['acme/old'] },
    ...{ allowed_data_regions: ['europe'], allow_safety_retention_google: false, include_byok_in_budgets: true },
  });
  const workspace = await created('/workspaces', {
    ...{ name: 'Team', slug: 'team', disabled_server_tools: ['svc:web_search'], prompt_caching: 'always' },
    ...{ default_provider_sort: 'exacto', rate_limits, io_logging_api_key_ids: [] },
  });
  const byok = await created('/byok', {
    provider: 'openai',
    key: 'sk-abcdefgh',
    allowed_models: [],
    allowed_user_ids: [],
  });

  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`${gateway.url}/console/#/keys/${key.hash}`);
  await page.getByLabel('Management key').fill(MANAGEMENT_KEY);
  await page.keyboard.press('Enter');

  /** Saves the form of a thing, and compares the whole of it with what it was. */
  const saves = async (route: string, where: string, change: () => Promise<unknown>, changed: Json) => {
    const before = await read(route);
    await page.goto(`${gateway.url}/console/#${where}`);
    await page.getByRole('button', { name: /^Edit/ }).first().click();
    await change();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    assert.deepEqual(await read(route), { ...before, ...changed });
  };
  await saves(...both(`/keys/${key.hash}`), () => page.getByLabel('Tokens a minute').fill('70'), {
    rate_limits: { ...key.rate_limits, tokens_per_minute: 70 },
  });
  await saves(`/byok/${byok.id}`, '/byok', () => page.getByLabel('of these members').fill('user_a\nuser_b'), {
    allowed_user_ids: ['user_a', 'user_b'],
  });
  await saves(
    ...both(`/guardrails/${guardrail.id}`),
    async () => {
      await page.getByLabel('xAI').check();
      await page.getByLabel('Never these providers').fill('slow');
      await page.getByLabel('free endpoints that train on prompts').check();
    },
    {
      ...{ enforce_zdr_xai: true, enforce_zdr_vendor_d: true },
      ...{ ignored_providers: ['slow'], enable_free_model_training: false },
    },
  );
  await saves(
    ...both(`/workspaces/${workspace.id}`),
    async () => {
      await page.getByLabel('Slug').fill('crew');
      await page.getByLabel('Requests an hour').fill('60');
      await page.getByLabel('Prompt caching').selectOption('off');
    },
    { slug: 'crew', prompt_caching: 'off', rate_limits: { ...workspace.rate_limits, requests_per_hour: 60 } },
  );
});

/** The route of a thing is that of its page. */
const both = (route: string) => [route, route] as const;

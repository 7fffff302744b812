/** The chat with an intern in the console: a real browser and gateway, an agent that does what the test says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { ScriptedAgent } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { internsOf } from '../interns/interns.ts';
import { builtConsole } from './page.ts';

const HOSTILE = `<img src=x onerror="document.title='owned'">`;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(place: string): Promise<{ violations: { id: string }[] }> } };
    return (await axe.run('main')).violations.map(({ id }) => id);
  });
}

test('one talks to an intern: it asks, is answered and steered, and gets secrets', { skip: NO_BROWSER }, async (t) => {
  const agent = new ScriptedAgent();
  const sandboxDrivers = new ScriptedSandboxes().choices;
  const gateway = await startGateway(t, {
    ...{ sandboxDrivers, agent: agent.profile },
    consoleFolder: await builtConsole(t),
  });
  const { made, reaches } = internsOf(gateway);
  const { id } = await made({ name: 'talks', provision: true });
  await reaches(id, 'running');
  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`${gateway.url}/console/`);
  await page.getByLabel('Management key').fill(MANAGEMENT_KEY);
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Interns' }).click();
  await page.getByLabel('Or paste an inference key').fill(INFERENCE_KEY);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByRole('link', { name: 'talks' }).click();

  const message = page.getByRole('textbox', { name: 'Message' });
  await message.fill('Clean up.');
  await page.keyboard.press('Enter');
  const turn = await agent.nextTurn();
  assert.deepEqual(turn.prompt, { text: 'Clean up.', mode: 'manual' });
  turn.think('Let me see.');
  turn.say(`I found ${HOSTILE}`);
  await page.getByText(`I found ${HOSTILE}`).waitFor();
  await message.fill('Only the logs!');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByText('Added to the turn that ran').waitFor();
  assert.deepEqual(turn.steered, ['Only the logs!']);
  turn.say('As you wish.');
  await page.getByText('As you wish.').waitFor();

  const permission = turn.ask({ kind: 'permission', operation: HOSTILE, options: ['allow_once', 'reject_once'] });
  await page.getByRole('button', { name: 'Allow once' }).waitFor();
  assert.deepEqual(await findings(page), []);
  await page.getByRole('button', { name: 'Allow once' }).click();
  assert.deepEqual(await permission, { action: 'option', option: 'allow_once' });
  const fields = [
    { name: 'days', type: 'integer', required: true },
    { name: 'format', type: 'string', required: true, options: ['zip', 'tar'] },
    { name: 'quiet', type: 'boolean', required: false },
  ];
  const asked = turn.ask({ kind: 'elicitation', message: 'How many days are kept?', fields });
  await page.getByLabel('days').fill('7');
  await page.getByLabel('format').selectOption('tar');
  await page.getByRole('button', { name: 'Answer', exact: true }).click();
  assert.deepEqual(await asked, { action: 'accept', content: { days: 7, format: 'tar' } });
  turn.say('Done.');
  turn.complete({ promptTokens: 12, completionTokens: 3, cachedTokens: 0 });
  await page.getByText('12 → 3 tokens').waitFor();
  assert.deepEqual(await findings(page), []);

  await message.fill('And now?');
  await page.keyboard.press('Enter');
  const next = await agent.nextTurn();
  assert.equal(next.session, turn.session);
  await page.getByRole('button', { name: 'Stop' }).click();
  await until(() => next.isCancelled, 'the turn is cancelled');
  await page.getByText('Stopped').waitFor();
  assert.equal(await page.locator('.turns img').count(), 0);

  await page.getByText('Secrets', { exact: true }).click();
  await page.getByRole('button', { name: 'Store a secret' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('token');
  await dialog.getByLabel('Value').fill('canary');
  await dialog.getByLabel('Hosts').fill('api.example.com');
  await dialog.getByRole('button', { name: 'Store' }).click();
  await page.getByRole('button', { name: 'Delete token' }).waitFor();
  assert.ok(!(await page.content()).includes('canary'));
  assert.deepEqual(await findings(page), []);
  assert.match(await page.title(), /^talks/);
});

/** The playground in a real browser: images to a model and from it, and the results of tools that it calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { answerOf, streamOf } from '../../src/testing/upstream/answers.ts';
import { builtConsole } from './page.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const HOSTILE = `<img src=x onerror="document.title='owned'">`;

test('in every format a picture goes to a model, a tool is answered, and a picture comes back', {
  skip: NO_BROWSER,
}, async (t) => {
  const gateway = await startGateway(t, {
    providers: { pictures: { kind: 'chat', model: { output_modalities: ['text', 'image'] } } },
    consoleFolder: await builtConsole(t),
  });
  const weather = { id: 'c1', name: 'weather', arguments: JSON.stringify({ city: HOSTILE }) };
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } };
  const foreign = { type: 'image_url', image_url: { url: 'https://elsewhere.test/tracked.png' } };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const turns = [
    answerOf('chat', true, { calls: [weather], finish: 'tool_calls' }),
    streamOf([
      chunk({ role: 'assistant', content: 'Here it is.' }),
      chunk({ images: [picture, foreign] }),
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
    ]),
  ];
  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`${gateway.url}/console/#/playground?model=test/pictures`);
  await page.getByLabel('Management key').fill(MANAGEMENT_KEY);
  await page.keyboard.press('Enter');
  await page.getByLabel('Or paste an inference key').fill(INFERENCE_KEY);
  await page.getByRole('button', { name: 'Use this key' }).click();
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Tools').fill('[{"name":"weather","parameters":{"type":"object"}}]');
  await page.getByRole('button', { name: 'Close' }).click();
  const file = { name: 'sky.png', mimeType: 'image/png', buffer: Buffer.from(PIXEL, 'base64') };
  for (const format of ['Chat', 'Responses', 'Messages']) {
    gateway.upstream.script('pictures', turns);
    const before = gateway.upstream.requests('pictures').length;
    await page.getByLabel(format, { exact: true }).check({ force: true });
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByAltText('Attached 1').waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill('What is the weather there?');
    await page.keyboard.press('Enter');
    await page.getByLabel('Result of weather').fill(`rain ${HOSTILE}`);
    await page.getByRole('button', { name: 'Return the results' }).click();
    await page.getByText('Here it is.').waitFor();
    if (format === 'Messages') await page.getByText('Answers in this format cannot have images').waitFor();
    else await page.getByAltText('Received 1').waitFor();
    assert.equal(await page.getByAltText('Received 2').count(), 0, 'pictures of other hosts are not loaded');
    assert.ok(!(await page.title()).includes('owned'));

    const requests = gateway.upstream.requests('pictures').slice(before);
    const [first, second] = requests.map(({ body }) => JSON.parse(body.toString()));
    const sent = first.messages.at(-1).content.find(({ type }: { type: string }) => type === 'image_url');
    assert.equal(sent.image_url.url, picture.image_url.url);
    assert.equal(first.tools[0].function.name, 'weather');
    assert.deepEqual(first.modalities, format === 'Messages' ? undefined : ['image', 'text']);
    const [called, result] = second.messages.slice(-2);
    assert.equal(called.tool_calls[0].id, 'c1');
    assert.deepEqual([result.role, result.tool_call_id, result.content], ['tool', 'c1', `rain ${HOSTILE}`]);
    if (format === 'Responses') await continued(page, gateway);
    await page.getByRole('button', { name: 'Clear' }).click();
  }
});

/** The next prompt has the picture that came back. */
async function continued(page: Page, gateway: Gateway): Promise<void> {
  gateway.upstream.script('pictures', answerOf('chat', true, { text: 'A sky.' }));
  await page.getByRole('textbox', { name: 'Message' }).fill('What is in it?');
  await page.keyboard.press('Enter');
  await page.getByText('A sky.').waitFor();
  const { messages } = JSON.parse(gateway.upstream.requests('pictures').at(-1)!.body.toString());
  assert.ok(JSON.stringify(messages.slice(0, -1)).split(PIXEL).length === 3, 'the picture of each side');
}

/** The playground in a real browser: images to a model and from it, and the results of tools that it calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { NO_BROWSER, openBrowser } from '../../src/testing/process/browser.ts';
import { answerOf, streamOf } from '../../src/testing/upstream/answers.ts';
import { builtConsole } from './page.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const HOSTILE = `<img src=x onerror="document.title='owned'">`;

test('a picture goes to a model, a tool is answered, a picture comes back', { skip: NO_BROWSER }, async (t) => {
  const gateway = await startGateway(t, {
    providers: { pictures: { kind: 'chat' } },
    consoleFolder: await builtConsole(t),
  });
  const weather = { id: 'c1', name: 'weather', arguments: JSON.stringify({ city: HOSTILE }) };
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } };
  const foreign = { type: 'image_url', image_url: { url: 'https://elsewhere.test/tracked.png' } };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  gateway.upstream.script('pictures', [
    answerOf('chat', true, { calls: [weather], finish: 'tool_calls' }),
    streamOf([
      chunk({ role: 'assistant', content: 'Here it is.' }),
      chunk({ images: [picture, foreign] }),
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
    ]),
  ]);
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
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByAltText('Attached 1').waitFor();
  await page.getByRole('textbox', { name: 'Message' }).fill('What is the weather there?');
  await page.keyboard.press('Enter');
  await page.getByLabel('Result of weather').fill(`rain ${HOSTILE}`);
  await page.getByRole('button', { name: 'Return the results' }).click();
  await page.getByText('Here it is.').waitFor();
  await page.getByAltText('Received 1').waitFor();
  assert.equal(await page.getByAltText('Received 2').count(), 0, 'pictures of other hosts are not loaded');
  assert.ok(!(await page.title()).includes('owned'));

  const [first, second] = gateway.upstream.requests('pictures').map(({ body }) => JSON.parse(body.toString()));
  assert.equal(first.messages[0].content[1].image_url.url, picture.image_url.url);
  assert.equal(first.tools[0].function.name, 'weather');
  const [, called, result] = second.messages;
  assert.equal(called.tool_calls[0].id, 'c1');
  assert.deepEqual([result.role, result.tool_call_id, result.content], ['tool', 'c1', `rain ${HOSTILE}`]);
});

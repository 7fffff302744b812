import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocument } from '../../base/json.ts';
import { chat } from '../../formats/index.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import { BlockedByFilter, Filters } from './filters.ts';

// biome-ignore lint/suspicious/noExplicitAny: content parts of every format
type Json = any;

const MEDIA: Json[] = [
  { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
  { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
  { type: 'input_image', image_url: 'https://example.com/a.png' },
  { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
  { type: 'file', file: { file_id: 'f' } },
];

async function blocks(content: Json[]): Promise<boolean> {
  const patterns = [{ pattern: 'the secret phrase', action: 'block' as const, label: null }];
  const filters = await Filters.of([{ guardrailId: '1', via: 'api-key', rules: { builtins: [], patterns } }]);
  const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] }));
  try {
    filters!.screen(readDocument(body), chat.texts, new TestClock());
    return false;
  } catch (error) {
    assert.ok(error instanceof BlockedByFilter);
    return true;
  }
}

const text = (said: string) => ({ type: 'text', text: said });

test('a phrase split by media is found as if the media were absent', async () => {
  for (const medium of MEDIA) {
    assert.equal(await blocks([text('the sec'), medium, text('ret phrase')]), true, medium.type);
    assert.equal(await blocks([text('the '), medium, medium, text('secret '), medium, text('phrase')]), true);
    assert.equal(await blocks([medium, text('the secret'), text(' phrase'), medium, text('x')]), true);
    assert.equal(await blocks([medium, text('the sec'), medium]), false);
  }
  // A part that is not media separates two texts for the model too.
  const result = { type: 'tool_result', tool_use_id: 'a', content: 'x' };
  assert.equal(await blocks([text('the sec'), result, text('ret phrase')]), false);
});

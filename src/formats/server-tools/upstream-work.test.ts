import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormatId } from '../conversation/conversation.ts';
import type { UpstreamWork } from '../conversation/format.ts';
import { vendorWork } from './upstream-work.ts';

const SEARCHES = 10 * 16_384;

const CASES: readonly [FormatId, object, Partial<UpstreamWork> | undefined][] = [
  ['messages', {}, undefined],
  [
    'messages',
    {
      tools: [
        { name: 'own', input_schema: {} },
        { type: 'bash_20250124', name: 'bash' },
      ],
    },
    undefined,
  ],
  ['messages', { tools: [{ type: 'web_search_20250305', max_uses: 2 }] }, { searches: 2, tokens: 2 * 16_384 }],
  ['messages', { tools: [{ type: 'web_search_20250305' }] }, { searches: 10, tokens: SEARCHES }],
  [
    'messages',
    { tools: [{ type: 'web_fetch_20250910', max_uses: 3, max_content_tokens: 5_000 }] },
    { searches: 0, tokens: 15_000 },
  ],
  ['messages', { mcp_servers: [{ type: 'url', url: 'https://a.example' }] }, { searches: 0, tokens: SEARCHES }],
  [
    'messages',
    {
      tools: [
        { type: 'web_search_20250305', max_uses: 1 },
        { type: 'code_execution_20250825', max_uses: 1 },
      ],
    },
    { searches: 1, tokens: 2 * 16_384 },
  ],
  ['responses', { tools: [{ type: 'web_search' }] }, { searches: 10, tokens: SEARCHES }],
  ['responses', { tools: [{ type: 'x_search' }] }, { searches: 10, tokens: SEARCHES }],
  ['responses', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }, { searches: 0, tokens: SEARCHES }],
  ['responses', { tools: [{ type: 'web_search' }], max_tool_calls: 2 }, { searches: 2, tokens: 2 * 16_384 }],
  ['responses', { tools: [{ type: 'image_generation' }] }, { images: 10 }],
  [
    'responses',
    { tools: [{ type: 'image_generation', model: 'maker' }, { type: 'web_search' }], max_tool_calls: 1 },
    { searches: 1, tokens: 16_384, images: 1, imageModel: 'maker' },
  ],
  // The gateway runs these itself.
  ['responses', { tools: [{ type: 'file_search', vector_store_ids: ['svc_vs_1'] }] }, undefined],
  ['responses', { tools: [{ type: 'mcp', server_url: 'https://a.example' }, { type: 'svc:web_search' }] }, undefined],
  ['chat', { tools: [{ type: 'web_search' }, { type: 'function', function: { name: 'web_search' } }] }, undefined],
  ['chat', { web_search_options: {} }, { searches: 10, tokens: SEARCHES }],
  ['gemini', { tools: [{ google_search: {} }] }, { searches: 10, tokens: SEARCHES }],
  ['gemini', { tools: { googleSearch: {}, urlContext: {} } }, { searches: 10, tokens: SEARCHES + 10 * 32_768 }],
  ['gemini', { tools: [{ google_maps: {} }] }, { searches: 10, tokens: SEARCHES }],
  ['gemini', { tools: [{ functionDeclarations: [{ name: 'web_search' }] }] }, undefined],
];

test('what a vendor’s tools may do is bounded by their uses, and tools of the client or the gateway do nothing there', () => {
  for (const [format, request, work] of CASES) {
    const whole = work && { searches: 0, tokens: 0, images: 0, ...work };
    assert.deepEqual(vendorWork({ ...request }, format), whole, `${format} ${JSON.stringify(request)}`);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chat, messages, responses } from '../index.ts';
import { renewedEvents } from './renewal.ts';

const RENEWAL = { id: 'gen-new', created: 99, metadataKey: 'svc_metadata' };

test('a renewed chat answer differs only in id, time and usage, whatever else it contains', () => {
  const content = '"content":"a \\"id\\":\\"gen-old\\" b","n":9007199254740993,"x":1.0';
  const usage = '{"prompt_tokens":3,"cost":0.5,"cost_details":{"a":1,"b":null},"service_tier":"flex"}';
  const json = `{ "id":"gen-old", "created":1,"choices":[{"id":"kept",${content}}],"usage":${usage},"svc_metadata":{"a":1}}`;
  const zero = '{"prompt_tokens":0,"cost":0,"cost_details":{"a":0,"b":null},"service_tier":"flex"}';
  assert.equal(
    chat.renew(json, RENEWAL),
    `{ "id":"gen-new", "created":99,"choices":[{"id":"kept",${content}}],"usage":${zero}}`,
  );
});

test('messages events are renewed where they hold the message, and blocks keep their ids', () => {
  const start = '{"type":"message_start","message":{"id":"gen-old","usage":{"input_tokens":4}}}';
  const block = '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1"}}';
  const delta = '{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}';
  assert.equal(
    messages.renew(start, RENEWAL),
    '{"type":"message_start","message":{"id":"gen-new","usage":{"input_tokens":0}}}',
  );
  assert.equal(messages.renew(block, RENEWAL), block);
  assert.equal(messages.renew(delta, RENEWAL), '{"type":"message_delta","delta":{},"usage":{"output_tokens":0}}');
});

test('responses events get the id in their own format, and items keep their ids', () => {
  const done =
    '{"type":"response.completed","response":{"id":"resp_old","created_at":5,"completed_at":7,"usage":null}}';
  const item = '{"type":"response.output_item.added","item":{"id":"msg_1"}}';
  assert.equal(
    responses.renew(done, RENEWAL),
    '{"type":"response.completed","response":{"id":"resp_new","created_at":99,"completed_at":99,"usage":null}}',
  );
  assert.equal(responses.renew(item, RENEWAL), item);
});

test('a renewed event stream keeps names, order and end markers', () => {
  const text = 'event: a\ndata: {"id":"gen-old"}\n\ndata: {"id":\ndata: "gen-old"}\n\ndata: [DONE]\n\n';
  assert.equal(
    renewedEvents(text, (json) => chat.renew(json, RENEWAL)),
    'event: a\ndata: {"id":"gen-new"}\n\ndata: {"id": "gen-new"}\n\ndata: [DONE]\n\n',
  );
});

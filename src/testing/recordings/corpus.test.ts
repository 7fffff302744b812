import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { awsMessage, corpusMissing, recordings as load } from './corpus.ts';

const recordings = load();
const skip = corpusMissing;

describe('recordings', { skip }, () => {
  const of = (start: string) => recordings.filter(({ id }) => id.startsWith(start));

  test('every recording has an id of its own, bytes, and a content type where it streams', () => {
    assert.ok(recordings.length >= 255, String(recordings.length));
    assert.equal(new Set(recordings.map(({ id }) => id)).size, recordings.length);
    for (const { id, stream, status, headers, bytes } of recordings) {
      assert.ok(bytes.length > 0 || status >= 400, id);
      if (stream && status === 200) assert.ok(headers['content-type'], id);
    }
  });

  test('exchanges that share a file are apart; a message that starts twice within one is not', () => {
    assert.equal(of('anthropic/messages-stream-programmatic-tool-calling-1').length, 15);
    assert.equal(of('anthropic/messages-stream-tool-search-deferred-regex').length, 3);
    const [spliced, ...none] = of('anthropic/messages-stream-spliced-message-start');
    assert.equal(none.length, 0);
    assert.equal(spliced!.bytes.toString().split('event: message_start\n').length - 1, 2);
  });

  test('lines without framing are framed as their api frames them', () => {
    const start = (id: string) => of(id)[0]!.bytes.toString().slice(0, 40);
    assert.match(start('anthropic/messages-stream-mcp-1'), /^event: message_start\ndata: \{"type"/);
    assert.match(start('openai/responses-stream-custom-tool-1'), /^event: response.created\ndata: \{/);
    assert.match(start('google/generate-stream-stream-tool-call-arguments'), /^data: \{/);
    assert.ok(of('xai/chat-stream-tool-call')[0]!.bytes.toString().endsWith('}\n\ndata: [DONE]\n\n'));
    assert.match(start('anthropic/messages-chat-stream-with-tool-calls'), /^event: message_start\ndata: /);
    const converse = of('bedrock/converse-stream-amazon-bedrock-reasoning.chunks')[0]!.bytes;
    assert.ok(converse.readUInt32BE(0) < converse.length);
    assert.ok(converse.includes('messageStart'));
  });

  test('recorded streams stay byte for byte, with their own line ends', () => {
    const text = of('google/generate-stream-failure-prompt-blocked-safety.sse')[0]!.bytes.toString();
    assert.ok(text.includes('\r\n') && !text.endsWith('\r\n\r\n'));
  });

  test('requests and the headers that matter come along', () => {
    assert.ok(recordings.filter(({ request }) => request !== undefined).length >= 130);
    const names = new Set(recordings.flatMap(({ headers }) => Object.keys(headers)));
    assert.ok(names.has('content-type'));
    for (const name of names)
      assert.match(name, /^(content-type|retry-after|x-should-retry|.*request-?id|x-amzn-errortype|.*-ratelimit-.*)/);
  });
});

test('a message of the AWS event stream encoding has the bytes that its description gives for it', () => {
  // Worked by hand: 4 + 4 lengths, checksum of those, one header `a: b` (1 + 1 + 1 + 2 + 1), `{}`, checksum of all.
  const message = awsMessage({ a: 'b' }, Buffer.from('{}'));
  assert.equal(message.length, 24);
  assert.equal(message.subarray(0, 8).toString('hex'), '0000001800000006');
  assert.equal(message.subarray(12, 20).toString('hex'), '0161070001627b7d');
});

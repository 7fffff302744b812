/**
 * Amazon Bedrock through a whole gateway and real sockets: calls that the upstream checks the signature of, binary streams
 * that are cut and broken, exceptions in their middle, and Claude in its own format.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { loadConfig } from '../../src/base/config.ts';
import { KINDS, providersFrom } from '../../src/providers/index.ts';
import {
  BODY_FORMATS,
  type BodyFormat,
  readServedStream,
  readServedWhole,
} from '../../src/testing/clients/served-answer.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { awsMessage } from '../../src/testing/recordings/corpus.ts';
import { signatureFault } from '../../src/testing/upstream/aws-signature.ts';
import type { Answer, ReceivedRequest } from '../../src/testing/upstream/upstream.ts';

const KEYS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'FwoGZXIv',
};
const SIGNED = { kind: 'bedrock', region: 'eu-west-1', api_key: JSON.stringify(KEYS) };
const CLAUDE = 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0';
const ARN = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0';
const PATHS = { chat: '/chat/completions', messages: '/messages', responses: '/responses' };

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      nova: { ...SIGNED, model: { upstream_id: ARN } },
      claude: { ...SIGNED, model: { upstream_id: CLAUDE } },
      bearer: {
        kind: 'bedrock',
        region: 'eu-west-1',
        api_key: 'bedrock-api-key-abc',
        model: { upstream_id: 'amazon.nova-pro-v1:0' },
      },
      spare: {},
      second: { ...SIGNED, model: { upstream_id: 'amazon.nova-lite-v1:0' } },
    },
  },
);

const event = (type: string, payload: object) =>
  awsMessage(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    Buffer.from(JSON.stringify(payload)),
  );
const exception = (type: string, message: string) =>
  awsMessage(
    { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' },
    Buffer.from(JSON.stringify({ message })),
  );
const USAGE = {
  inputTokens: 10,
  outputTokens: 4,
  totalTokens: 114,
  cacheReadInputTokens: 70,
  cacheWriteInputTokens: 30,
};
const TEXT = 'Grüße 🌤';
const EVENTS = [
  event('messageStart', { role: 'assistant' }),
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Grüße ' }, p: 'abc' }),
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: '🌤' } }),
  event('contentBlockStop', { contentBlockIndex: 0 }),
  event('messageStop', { stopReason: 'end_turn' }),
  event('metadata', { usage: USAGE, metrics: { latencyMs: 1 } }),
];
const STREAM = Buffer.concat(EVENTS);

function binary(chunks: readonly Buffer[], more: Partial<Answer> = {}): Answer {
  return { headers: { 'content-type': 'application/vnd.amazon.eventstream' }, chunks, ...more };
}

function failed(status: number, type: string, message: string): Answer {
  const headers = { 'content-type': 'application/json', 'x-amzn-errortype': `${type}:http://internal.amazon.com/` };
  return { status, headers, chunks: [JSON.stringify({ message })] };
}

function whole(text = TEXT): Answer {
  const message = { role: 'assistant', content: [{ text }] };
  const reply = { output: { message }, stopReason: 'end_turn', usage: USAGE, metrics: { latencyMs: 1 } };
  return { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(reply)] };
}

async function ask(served: BodyFormat, model: string, stream: boolean, more: object = {}, headers = {}) {
  const prompt =
    served === 'responses' ? { input: 'hi' } : { max_tokens: 500, messages: [{ role: 'user', content: 'hi' }] };
  const body = { model: `test/${model}`, stream, ...prompt, ...more };
  const response = await gateway.post(PATHS[served], body, headers);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

function assertSigned(request: ReceivedRequest, key: string): void {
  const fault = signatureFault(
    { ...request, path: `/${key}${request.path}` },
    { [KEYS.accessKeyId]: KEYS.secretAccessKey },
    { region: 'eu-west-1', service: 'bedrock' },
  );
  assert.equal(fault, null);
  assert.equal(request.headers['x-amz-security-token'], KEYS.sessionToken);
}

test('a signed call reaches the model that an ARN names, and its answer every format of client', async () => {
  const encoded = encodeURIComponent(ARN);
  for (const served of BODY_FORMATS) {
    for (const stream of [false, true]) {
      gateway.upstream.script('nova', stream ? binary([STREAM]) : whole());
      const { status, text } = await ask(served, 'nova', stream);
      assert.equal(status, 200, text);
      const seen = stream ? readServedStream(served, text, 'finish') : readServedWhole(served, text);
      assert.equal(seen.choices[0]!.text, TEXT);
      assert.deepEqual(seen.usage, { input: 110, cacheRead: 70, cacheWrite: 30, output: 4, reasoning: 0 });
      assert.ok(Math.abs((seen.cost as number) - (10 * 3 + 70 * 0.3 + 30 * 3.75 + 4 * 15) / 1e6) < 1e-12);
      const request = gateway.upstream.requests('nova').at(-1)!;
      assert.equal(request.path, `/model/${encoded}/${stream ? 'converse-stream' : 'converse'}`);
      assertSigned(request, 'nova');
      assert.equal(request.headers['authorization']!.includes('sk-'), false);
    }
  }
});

test('a bearer key is sent as one, and nothing is signed', async () => {
  gateway.upstream.script('bearer', whole());
  assert.equal((await ask('chat', 'bearer', false)).status, 200);
  const { headers } = gateway.upstream.requests('bearer').at(-1)!;
  assert.equal(headers['authorization'], 'Bearer bedrock-api-key-abc');
  assert.equal(headers['x-amz-date'], undefined);
});

test('a binary stream that the network cuts at any position reads as in one piece', async () => {
  for (const served of BODY_FORMATS) {
    gateway.upstream.script('nova', binary([STREAM]));
    const one = readServedStream(served, (await ask(served, 'nova', true)).text, 'finish');
    // Every position in one format; the others share the reading of the bytes.
    const step = served === 'chat' ? 1 : 17;
    for (let at = step; at < STREAM.length; at += step) {
      gateway.upstream.script('nova', binary([STREAM.subarray(0, at), STREAM.subarray(at)]));
      const { text } = await ask(served, 'nova', true);
      const cut = readServedStream(served, text, 'finish');
      assert.deepEqual({ ...cut, id: '' }, { ...one, id: '' }, `${served} cut at ${at}`);
    }
  }
});

test('a stream that ends before its stop ends with an error after the content, however its connection ends', async () => {
  const stop = Buffer.concat(EVENTS.slice(0, 5)).length;
  const firstText = Buffer.concat(EVENTS.slice(0, 2)).length;
  for (const served of BODY_FORMATS) {
    for (const end of ['close', 'cut', 'reset'] as const) {
      for (const at of [firstText, firstText + 9, stop - EVENTS[4]!.length, stop - 1]) {
        gateway.upstream.script('nova', binary([STREAM.subarray(0, at)], { end }));
        const { status, text } = await ask(served, 'nova', true);
        // A reset may take what was still on its way.
        if (end === 'reset' && status !== 200) continue;
        const seen = readServedStream(served, text, 'finish');
        assert.ok(seen.error !== null, `${served} ${end} at ${at}: ends as if it were complete`);
        assert.ok(TEXT.startsWith(seen.choices[0]?.text ?? ''));
      }
    }
  }
});

test('an exception in the middle of a stream is an error to the client, never a clean end', async () => {
  for (const served of BODY_FORMATS) {
    const answer = [
      ...EVENTS.slice(0, 2),
      exception('throttlingException', 'Too many tokens, please wait.'),
      ...EVENTS.slice(4),
    ];
    gateway.upstream.script('nova', binary(answer));
    const { text } = await ask(served, 'nova', true);
    const seen = readServedStream(served, text, 'finish');
    assert.equal(seen.choices[0]!.text, 'Grüße ');
    assert.match(JSON.stringify(seen.error), /Too many tokens/);
    assert.doesNotMatch(text, /"finish_reason":"stop"|message_stop|response\.completed/);
  }
});

test('damage in a stream is an error, and before anything visible another endpoint answers', async () => {
  const damaged = Buffer.from(STREAM);
  damaged[EVENTS[0]!.length + 40]! ^= 1;
  for (const first of [
    binary([damaged]),
    binary([EVENTS[0]!, exception('internalServerException', 'x')]),
    failed(429, 'ThrottlingException', 'slow down'),
    failed(503, 'ServiceUnavailableException', 'no'),
  ]) {
    gateway.upstream.script('nova', first);
    gateway.upstream.script('second', binary([STREAM]));
    const { status, text } = await ask('chat', 'nova', true, { models: ['test/second'] });
    assert.equal(status, 200, text);
    assert.equal(readServedStream('chat', text, 'finish').choices[0]!.text, TEXT);
  }
  const half = Buffer.from(STREAM);
  half[EVENTS[0]!.length + EVENTS[1]!.length + 40]! ^= 1;
  gateway.upstream.script('nova', binary([half]));
  const seen = readServedStream('chat', (await ask('chat', 'nova', true)).text, 'finish');
  assert.equal(seen.choices[0]!.text, 'Grüße ');
  assert.ok(seen.error !== null);
});

test('errors have the kind that the exception names, and our account’s trouble is never the client’s', async () => {
  const cases: [Answer, number][] = [
    [failed(429, 'ThrottlingException', 'slow'), 429],
    [failed(400, 'ValidationException', 'Input is too long for requested model.'), 400],
    [failed(403, 'ExpiredTokenException', 'The security token included in the request is expired'), 502],
    [failed(403, 'AccessDeniedException', 'no access to 123456789012'), 502],
    [failed(400, 'ServiceQuotaExceededException', 'quota'), 502],
    [failed(424, 'ModelErrorException', 'broke'), 502],
    [failed(408, 'ModelTimeoutException', 'slow'), 504],
  ];
  for (const [answer, status] of cases) {
    for (const model of ['nova', 'claude']) {
      gateway.upstream.script(model, answer);
      // Claude is asked in its own format for this client: the errors are the service's all the same.
      const seen = await ask('messages', model, false);
      assert.equal(seen.status, status, seen.text);
      assert.doesNotMatch(seen.text, /security token|123456789012/);
    }
  }
});

const CHUNK = (value: object) =>
  event('chunk', { bytes: Buffer.from(JSON.stringify(value)).toString('base64'), p: 'ab' });
const INVOKED = [
  CHUNK({
    type: 'message_start',
    message: {
      id: 'msg_bdrk_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 9, output_tokens: 1 },
    },
  }),
  CHUNK({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  CHUNK({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } }),
  CHUNK({ type: 'content_block_stop', index: 0 }),
  CHUNK({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 6 },
  }),
  CHUNK({ type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 9, outputTokenCount: 6 } }),
];

test('a client of the messages format reaches Claude in its own format: version and betas in the body, model and stream in the path', async () => {
  gateway.upstream.script('claude', binary(INVOKED));
  const more = { future_member: 12345678901234567890n.toString(), system: 'be brief' };
  const { status, text } = await ask('messages', 'claude', true, more, {
    'anthropic-beta': 'context-1m-2025-08-07, other',
  });
  assert.equal(status, 200, text);
  const seen = readServedStream('messages', text, 'finish');
  assert.equal(seen.choices[0]!.text, TEXT);
  assert.equal(seen.usage!.output, 6);
  const request = gateway.upstream.requests('claude').at(-1)!;
  assert.equal(request.path, `/model/${encodeURIComponent(CLAUDE)}/invoke-with-response-stream`);
  assertSigned(request, 'claude');
  const { metadata: _, ...body } = request.json as Record<string, unknown>;
  assert.deepEqual(body, {
    max_tokens: 500,
    messages: [{ role: 'user', content: 'hi' }],
    ...more,
    anthropic_version: 'bedrock-2023-05-31',
    anthropic_beta: ['context-1m-2025-08-07', 'other'],
  });
});

test('an invoked answer is relayed whole, and broken off in the middle it is an error', async () => {
  const reply = {
    id: 'msg_bdrk_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [{ type: 'text', text: TEXT }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 9, output_tokens: 6 },
    new_member: 1,
  };
  gateway.upstream.script('claude', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify(reply)],
  });
  const { text } = await ask('messages', 'claude', false);
  assert.equal(readServedWhole('messages', text).choices[0]!.text, TEXT);
  assert.equal(JSON.parse(text).new_member, 1);
  assert.match(gateway.upstream.requests('claude').at(-1)!.path, /\/invoke$/);
  gateway.upstream.script(
    'claude',
    binary([...INVOKED.slice(0, 3), exception('modelStreamErrorException', 'it broke')]),
  );
  const broken = readServedStream('messages', (await ask('messages', 'claude', true)).text, 'finish');
  assert.equal(broken.choices[0]!.text, TEXT);
  assert.match(JSON.stringify(broken.error), /it broke/);
});

test('clients of other formats reach Claude in the converse format, with its thinking signed and sent back', async () => {
  const content = [{ reasoningContent: { reasoningText: { text: 'hm', signature: 'c2ln' } } }, { text: TEXT }];
  const reply = { output: { message: { role: 'assistant', content } }, stopReason: 'end_turn', usage: USAGE };
  gateway.upstream.script('claude', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify(reply)],
  });
  const first = await ask('chat', 'claude', false, { reasoning: { effort: 'low' }, max_tokens: 8000 });
  const { message } = JSON.parse(first.text).choices[0];
  assert.equal(message.reasoning, 'hm');
  const history = [{ role: 'user', content: 'hi' }, message, { role: 'user', content: 'go on' }];
  assert.equal((await ask('chat', 'claude', false, { messages: history })).status, 200);
  const request = gateway.upstream.requests('claude').at(-1)!;
  assert.match(request.path, /\/converse$/);
  assert.deepEqual((request.json as { messages: { content: unknown }[] }).messages[1]!.content, content);
});

test('an image URL reaches the service as bytes, and never one in the gateway’s network', async () => {
  const picture = (url: string) => ({
    chat: [{ type: 'image_url', image_url: { url } }],
    messages: [{ type: 'image', source: { type: 'url', url } }],
  });
  for (const served of ['chat', 'messages'] as const) {
    for (const model of ['nova', 'claude']) {
      const before = gateway.upstream.requests(model).length;
      const content = picture('http://169.254.169.254/latest/meta-data/')[served];
      const { status, text } = await ask(served, model, false, { messages: [{ role: 'user', content }] });
      assert.equal(status, 400, text);
      assert.equal(gateway.upstream.requests(model).length, before);
    }
  }
});

test('a Bedrock key switches Bedrock on in the region that the environment names, keys of AWS alone do not', () => {
  const load = (env: Record<string, string>, yaml = '{}') =>
    providersFrom(loadConfig({ env, cwd: '/', kinds: KINDS, readFile: () => yaml }));
  const listed = JSON.stringify({ providers: [{ id: 'aws', kind: 'bedrock' }] });
  const [bearer] = load({ AWS_BEARER_TOKEN_BEDROCK: 'key', AWS_REGION: 'eu-west-1' });
  assert.deepEqual([bearer!.id, bearer!.credentials], ['bedrock', ['key']]);
  assert.equal(bearer!.baseUrl, 'https://bedrock-runtime.eu-west-1.amazonaws.com');
  const keys = { AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 's', AWS_REGION: 'eu-west-1' };
  assert.equal(
    load(keys).some((provider) => provider.kind.id === 'bedrock'),
    false,
  );
  const [aws] = load(keys, listed);
  assert.deepEqual([aws!.id, aws!.credentials, aws!.options['region']], ['aws', [], 'eu-west-1']);
  assert.throws(() => load({}, listed), /AWS_REGION is not set/);
});

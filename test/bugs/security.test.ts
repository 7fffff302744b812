/** Leaks and ways to harm a gateway that users of other gateways met, tried on a whole one. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createLog } from '../../src/base/log.ts';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import {
  ask,
  FORMAT_PAIRS,
  FORMATS,
  PATHS,
  readStreamed,
  requestOf,
  rowOf,
} from '../../src/testing/gateway/ask-gateway.ts';
import { INFERENCE_KEY, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  chatChunk,
  chatData,
  errorOf,
  type Format,
  messagesStart,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const lines: string[] = [];

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    log: createLog({ stream: { write: (line) => lines.push(line) }, level: 'debug' }),
    providers: {
      chat: { timeouts: { idle: '600s' } },
      messages: { kind: 'messages' },
      openai: { kind: 'openai' },
      // A key in the address, as some services have it.
      refused: { base_url: `http://127.0.0.1:9/${UPSTREAM_KEY}/v1` },
      unknown: { base_url: `http://${UPSTREAM_KEY}.invalid/v1` },
    },
  },
);
const port = Number(new URL(gateway.url).port);

const SPELLINGS = [
  UPSTREAM_KEY,
  encodeURIComponent(UPSTREAM_KEY),
  Buffer.from(UPSTREAM_KEY).toString('base64'),
  Buffer.from(UPSTREAM_KEY).toString('base64url'),
  Buffer.from(UPSTREAM_KEY).toString('base64').replace(/=+$/, ''),
];

function assertNoKey(where: string, ...texts: string[]): void {
  for (const text of texts) for (const spelling of SPELLINGS) assert.ok(!text.includes(spelling), `${where}: ${text}`);
}

/** Answers that hold the credential which they were sent. */
const ECHOES: [string, (format: Format) => Answer][] = [
  ['a refused key named in full', (format) => errorOf(format, 401, `Incorrect API key provided: ${UPSTREAM_KEY}`)],
  [
    'the address in a 400',
    (format) => errorOf(format, 400, `bad request: https://api.example/v1?key=${encodeURIComponent(UPSTREAM_KEY)}`),
  ],
  [
    'the header in base64',
    (format) =>
      errorOf(format, 400, `got Basic ${Buffer.from(`x:${UPSTREAM_KEY}`).toString('base64')} ${SPELLINGS[2]}`),
  ],
  [
    'the key in the error’s code',
    () =>
      wholeOf(
        { error: { message: 'x', code: UPSTREAM_KEY, type: UPSTREAM_KEY, param: UPSTREAM_KEY } },
        { status: 400 },
      ),
  ],
  [
    'the key in a page',
    () => ({
      status: 500,
      headers: { 'content-type': 'text/html' },
      chunks: [`<pre>Authorization: Bearer ${UPSTREAM_KEY}</pre>`],
    }),
  ],
  [
    'the key in headers',
    () => ({
      status: 400,
      headers: {
        'content-type': 'application/json',
        'x-api-key': UPSTREAM_KEY,
        'x-request-id': UPSTREAM_KEY,
        'x-ratelimit-key': UPSTREAM_KEY,
      },
      chunks: ['{"error":{"message":"x"}}'],
    }),
  ],
  [
    'the key where JSON should be',
    () => ({ status: 200, headers: { 'content-type': 'application/json' }, chunks: [`oops ${UPSTREAM_KEY}`] }),
  ],
  [
    'the key in an error in the middle',
    (format) =>
      streamOf([
        ...(answerOf(format, true, { text: 'Hi' }).chunks as string[]).slice(0, 4),
        format === 'chat'
          ? chatData({ error: { message: `key ${UPSTREAM_KEY}` } })
          : `event: error\ndata: {"type":"error","error":{"type":"api_error","message":"key ${UPSTREAM_KEY}"}}\n\n`,
      ]),
  ],
  [
    'the key in a malformed event',
    (format) =>
      streamOf([format === 'chat' ? chatChunk({ content: 'Hi' }) : messagesStart(), `data: {"x": ${UPSTREAM_KEY}\n\n`]),
  ],
];

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`70 | ${name} | the provider's key never reaches the client, whatever the provider responds`, async () => {
    for (const [what, answer] of ECHOES) {
      for (const stream of [false, true]) {
        gateway.upstream.script(spoken, answer(spoken));
        const { text, headers } = await ask(
          gateway,
          served,
          `test/${spoken}`,
          { stream },
          { 'x-svc-metadata': 'enabled' },
        );
        assertNoKey(what, text, JSON.stringify([...headers]));
        const id = headers.get('x-generation-id');
        if (id !== null) assertNoKey(what, JSON.stringify(await rowOf(gateway, id)));
      }
    }
    assertNoKey('the log', lines.join(''));
  });

  test(`71 | ${name} | no upstream header is copied, and no redirect is followed`, async () => {
    const headers = {
      'content-type': 'application/json',
      'x-goog-api-key': 'CANARY-1',
      'set-cookie': 's=CANARY-2',
      'openai-organization': 'CANARY-3',
      authorization: 'CANARY-4',
      server: 'CANARY-5',
      via: 'CANARY-6',
      'access-control-allow-origin': 'https://canary.example',
      'x-generation-id': 'CANARY-7',
      'anthropic-organization-id': 'CANARY-8',
    };
    for (const status of [200, 301, 302, 303, 307, 308, 400, 429, 500]) {
      for (const stream of [false, true]) {
        const before = gateway.upstream.requests().length;
        const good = answerOf(spoken, stream, { text: 'x' });
        gateway.upstream.script(spoken, {
          ...(status === 200 ? good : { chunks: ['{}'] }),
          status,
          headers: {
            ...headers,
            ...(status === 200 && good.headers),
            ...(status < 400 && status > 200 && { location: `${gateway.upstream.url}/other` }),
          },
        });
        const reply = await ask(gateway, served, `test/${spoken}`, { stream });
        assert.ok(!/CANARY|canary/.test(JSON.stringify([...reply.headers])), JSON.stringify([...reply.headers]));
        assert.equal(gateway.upstream.requests().length, before + 1);
        if (status > 200 && status < 400) assert.equal(reply.status, 502);
      }
    }
  });

  test(`72 | ${name} | no client header reaches the provider, except those that its format allows`, async () => {
    const headers = {
      'x-goog-api-key': 'CANARY-2',
      'api-key': 'CANARY-3',
      cookie: 'a=CANARY-4',
      'x-forwarded-for': '203.0.113.9',
      'x-session-id': 'CANARY-5',
      'openai-organization': 'CANARY-6',
      'openai-beta': 'CANARY-7',
      'proxy-authorization': 'CANARY-8',
      'x-custom': 'CANARY-9',
      'user-agent': 'CANARY-10',
      referer: 'https://CANARY-11.example',
      'x-title': 'CANARY-12',
      'anthropic-beta': 'beta-2025',
      'anthropic-version': '2020-01-01',
      'idempotency-key': 'CANARY-13',
      forwarded: 'for=CANARY-14',
      traceparent: '00-CANARY',
    };
    for (const stream of [false, true]) {
      gateway.upstream.script(spoken, answerOf(spoken, stream, { text: 'x' }));
      const body =
        served === 'chat'
          ? { user: 'alice', session_id: 'CANARY-15' }
          : { metadata: { user_id: 'alice' }, session_id: 'CANARY-15' };
      const { status } = await ask(gateway, served, `test/${spoken}`, { stream, ...body }, headers);
      assert.equal(status, 200);
      const got = gateway.upstream.requests(spoken).at(-1)!;
      const seen = `${JSON.stringify(got.rawHeaders)} ${got.path} ${got.body}`;
      assert.ok(!/CANARY|203\.0\.113\.9|alice|2020-01-01/.test(seen), seen);
      assert.ok(!seen.includes(INFERENCE_KEY));
      assert.equal(got.headers['anthropic-beta'], spoken === 'messages' ? 'beta-2025' : undefined);
      if (spoken === 'chat') assert.equal(got.headers.authorization, `Bearer ${UPSTREAM_KEY}`);
      else assert.deepEqual([got.headers['x-api-key'], got.headers.authorization], [UPSTREAM_KEY, undefined]);
    }
  });
}

test('70 | an unreachable address that contains the key does not show it', async () => {
  for (const name of ['refused', 'unknown']) {
    for (const served of FORMATS) {
      const { status, text, headers } = await ask(gateway, served, `test/${name}`, {}, { 'x-svc-metadata': 'enabled' });
      assert.equal(status, 502, text);
      assertNoKey(name, text, JSON.stringify([...headers]), lines.join(''));
    }
  }
});

test('72 | the caller’s key is never forwarded, whichever header carries it', async () => {
  for (const header of ['x-api-key', 'x-goog-api-key']) {
    gateway.upstream.script('messages', answerOf('messages', false, { text: 'x' }));
    const response = await fetch(gateway.api + PATHS.messages, {
      method: 'POST',
      headers: { [header]: INFERENCE_KEY, 'content-type': 'application/json' },
      body: JSON.stringify(requestOf('messages', 'test/messages')),
    });
    assert.equal(response.status, 200);
    assert.ok(!JSON.stringify(gateway.upstream.requests('messages').at(-1)!.rawHeaders).includes(INFERENCE_KEY));
  }
  const refused = await fetch(gateway.api + PATHS.chat, {
    method: 'POST',
    headers: { 'api-key': INFERENCE_KEY, 'content-type': 'application/json' },
    body: '{}',
  });
  assert.equal(refused.status, 401);
});

// The upstreams of this issue fetch images themselves: the gateway opens no connection for one, wherever it points.
test('73 | image URLs are not fetched by the gateway, and non-web URLs are refused', async () => {
  const part = (served: Format, url: string) =>
    served === 'chat' ? { type: 'image_url', image_url: { url } } : { type: 'image', source: { type: 'url', url } };
  for (const { served, spoken } of FORMAT_PAIRS) {
    const before = gateway.upstream.requests().length;
    gateway.upstream.script(spoken, answerOf(spoken, false, { text: 'x' }));
    const inside = `${gateway.upstream.url}/secret.png`;
    const { status } = await ask(gateway, served, `test/${spoken}`, {
      messages: [{ role: 'user', content: [part(served, inside)] }],
    });
    assert.ok(status === 200 || status === 400);
    assert.ok(
      gateway.upstream
        .requests()
        .slice(before)
        .every(({ key }) => key === spoken),
      'the picture was fetched',
    );
    for (const url of [
      'file:///etc/passwd',
      'gopher://127.0.0.1/',
      'ftp://x/y.png',
      'javascript:1',
      'unix:/tmp/s',
      '//x/y.png',
    ]) {
      const refused = await ask(gateway, served, `test/${spoken}`, {
        messages: [{ role: 'user', content: [part(served, url)] }],
      });
      assert.equal(refused.status, 400, `${served} ${url}: ${refused.text}`);
      assert.match(refused.text, /url/);
    }
  }
});

const DEPTH = 100_000;

test('75 | deep nesting is a 400 in every position, from client and upstream, and the process survives', async () => {
  const deep = '['.repeat(DEPTH) + ']'.repeat(DEPTH);
  const objects = '{"a":'.repeat(DEPTH) + '1' + '}'.repeat(DEPTH);
  for (const served of FORMATS) {
    const tool = (schema: string) =>
      served === 'chat'
        ? `"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]`
        : `"tools":[{"name":"f","input_schema":${schema}}]`;
    for (const member of [
      `"metadata":${deep}`,
      `"x":${objects}`,
      tool(objects),
      `"response_format":${objects}`,
      `"output_config":${objects}`,
    ]) {
      const body = `{"model":"test/chat","max_tokens":9,"messages":[{"role":"user","content":"x"}],${member}}`;
      assert.equal((await gateway.post(PATHS[served], body)).status, 400);
    }
    assert.equal(
      (await gateway.post(PATHS[served], `{"model":"test/chat","max_tokens":9,"messages":${deep}}`)).status,
      400,
    );
  }
  for (const { served, spoken } of FORMAT_PAIRS) {
    for (const answer of [
      wholeOf(objects),
      wholeOf(`{"choices":${deep},"content":${deep}}`),
      streamOf([`data: ${objects}\n\n`]),
      errorWith(objects),
    ]) {
      gateway.upstream.script(spoken, answer);
      const { status } = await ask(gateway, served, `test/${spoken}`, {
        stream: answer.headers!['content-type']!.includes('stream'),
      });
      assert.ok(status >= 400, String(status));
    }
    // Arguments are a text: whatever is in them, the answer arrives or fails, and nothing falls over.
    gateway.upstream.script(spoken, answerOf('chat', false, { calls: [{ id: 't', name: 'f', arguments: '[]' }] }));
    const whole = String(answerOf('chat', false, { calls: [{ id: 't', name: 'f', arguments: 'DEEP' }] }).chunks![0]);
    gateway.upstream.script('chat', wholeOf(whole.replace('DEEP', objects.replaceAll('"', '\\"'))));
    assert.ok((await ask(gateway, served, 'test/chat')).status >= 200);
  }
  gateway.upstream.script('chat', answerOf('chat', false, { text: 'alive' }));
  assert.equal((await ask(gateway, 'chat', 'test/chat')).status, 200);
});

function errorWith(body: string): Answer {
  return { status: 400, headers: { 'content-type': 'application/json' }, chunks: [body] };
}

test('76 | a body is not read before authentication, beyond its limit, or compressed', async () => {
  const head = (key: string, ...more: string[]) => [
    'POST /api/v1/chat/completions HTTP/1.1',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    ...more,
  ];
  const stranger = await RawClient.open(port);
  assert.equal((await stranger.ask(head('sk-svc-nobody', 'Transfer-Encoding: chunked'))).status, 401);
  stranger.leave();
  const announced = await RawClient.open(port);
  assert.equal((await announced.ask(head(INFERENCE_KEY, `Content-Length: ${33 * 1024 * 1024}`))).status, 413);
  announced.leave();
  const packed = await RawClient.open(port);
  const bytes = gzipSync(Buffer.alloc(40 * 1024 * 1024, ' '));
  assert.equal(
    (await packed.ask(head(INFERENCE_KEY, 'Content-Encoding: gzip', `Content-Length: ${bytes.length}`), bytes)).status,
    415,
  );
  packed.leave();
});

// Slow heads are cut by the platform's own timer, which no test clock can hurry: `test/http/arrival.test.ts` has them.
test('77 | a slow body is cut off, other requests are served meanwhile, and long responses continue', async () => {
  const answer = answerOf('chat', true, { text: 'answer' }).chunks as string[];
  gateway.upstream.script(
    'chat',
    streamOf([chatChunk({ role: 'assistant', content: 'slow ' }), { gate: 'go' }, ...answer.slice(1)]),
  );
  const long = await gateway.post(PATHS.chat, requestOf('chat', 'test/chat', { stream: true }));
  const slow = await RawClient.open(port);
  await slow.send(
    `POST /api/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${INFERENCE_KEY}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"m`,
  );
  // Another connection is answered, and the server has seen the first by then.
  for (let count = 0; count < 3; count += 1) assert.equal((await gateway.get('/key')).status, 200);
  gateway.clock.jump(61_000);
  assert.equal((await slow.response()).status, 408);
  await slow.closed;
  gateway.upstream.open('go');
  assert.equal(readStreamed('chat', await long.text()).text, 'slow answer');
});

/** Streams whose upstream sends heartbeats after the finish reason instead of its end marker. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { readStreamed } from '../../src/testing/gateway/ask-gateway.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatChunk, chatFinish, chatUsageChunk, messagesEvents } from '../../src/testing/upstream/answers.ts';

const USAGE = { input: 12, output: 7 };
const SSE = { 'content-type': 'text/event-stream' };

/** A stream without its end marker, for each format whose finish reason and end marker are separate. */
const OPEN: Record<string, { kind: string; counted: string[]; uncounted: string[]; beat: string }> = {
  chat: {
    kind: 'chat',
    counted: [chatChunk({ content: 'all of it' }), chatFinish(), chatUsageChunk(USAGE)],
    uncounted: [chatChunk({ content: 'all of it' }), chatFinish()],
    beat: ': ping\n\n',
  },
  messages: {
    kind: 'messages',
    counted: messagesEvents({ text: 'all of it', usage: USAGE }).filter((event) => !event.includes('message_stop')),
    uncounted: [],
    beat: 'event: ping\ndata: {"type":"ping"}\n\n',
  },
  gemini: {
    kind: 'gemini',
    counted: [
      `data: ${JSON.stringify({
        candidates: [{ content: { role: 'model', parts: [{ text: 'all of it' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 },
      })}\n\n`,
    ],
    uncounted: [],
    beat: ': ping\n\n',
  },
};

interface Heard {
  text: string;
  over: boolean;
  /** The client disconnects. */
  leave(): Promise<void>;
}

/** Requests a stream and gathers its output. */
async function heard(gateway: Gateway, route: string, body: object): Promise<Heard> {
  const reply = await gateway.post(route, { stream: true, ...body });
  const reader = reply.body!.getReader();
  const result: Heard = { text: '', over: false, leave: () => reader.cancel() };
  void (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      result.text += Buffer.from(value).toString('utf8');
    }
    result.over = true;
  })();
  return result;
}

/** Sends one heartbeat for each of `seconds` seconds; each is read before the next. */
async function beats(gateway: Gateway, key: string, seconds: number, from: number): Promise<void> {
  for (let second = from; second < from + seconds; second++) {
    gateway.upstream.open(`${key} ${second}`);
    await settle();
    gateway.clock.jump(1_000);
  }
}

async function world(t: TestContext, name: string, pieces: readonly string[]): Promise<Gateway> {
  const { kind, beat } = OPEN[name]!;
  const gateway = await startGateway(t, { providers: { [name]: { kind } } });
  const living = Array.from({ length: 60 }, (_, at) => [{ gate: `${name} ${at}` }, beat]).flat();
  gateway.upstream.script(name, { headers: SSE, chunks: [...pieces, ...living], end: 'stall' });
  return gateway;
}

for (const name of Object.keys(OPEN)) {
  for (const [route, format] of [
    ['/chat/completions', 'chat'],
    ['/messages', 'messages'],
  ] as const) {
    test(`${route} from ${name}: heartbeats after finish and usage delay the end by two seconds`, async (t) => {
      const gateway = await world(t, name, OPEN[name]!.counted);
      const model = `test/${name}`;
      const answer = await heard(gateway, route, {
        model,
        max_tokens: 99,
        messages: [{ role: 'user', content: 'hi' }],
      });
      await until(() => answer.text.includes('all'), 'the text');
      await beats(gateway, name, 4, 0);
      await until(() => answer.over, 'the end of the answer');
      assert.equal(readStreamed(format, answer.text).text, 'all of it');
      assert.doesNotMatch(answer.text, /"error"/);
      assert.match(answer.text, /"cost":/);
      const received = gateway.upstream.requests(name)[0]!;
      await until(() => received.closedEarlyAt, 'the call is closed');
    });
  }
}

test('an answer without usage waits longer for it, and is then charged by estimate', async (t) => {
  const gateway = await world(t, 'chat', OPEN['chat']!.uncounted);
  const answer = await heard(gateway, '/chat/completions', {
    model: 'test/chat',
    messages: [{ role: 'user', content: 'hi' }],
  });
  await until(() => answer.text.includes('all'), 'the text');
  await beats(gateway, 'chat', 10, 0);
  assert.equal(answer.over, false);
  await beats(gateway, 'chat', 10, 10);
  await until(() => answer.over, 'the end of the answer');
  assert.equal(readStreamed('chat', answer.text).text, 'all of it');
});

test('heartbeats without a finish reason do not end the stream', async (t) => {
  const gateway = await world(t, 'chat', [chatChunk({ content: 'all of it' }), chatUsageChunk(USAGE)]);
  const answer = await heard(gateway, '/chat/completions', {
    model: 'test/chat',
    messages: [{ role: 'user', content: 'hi' }],
  });
  await until(() => answer.text.includes('all'), 'the text');
  await beats(gateway, 'chat', 30, 0);
  assert.equal(answer.over, false);
  await answer.leave();
});

test('a stream with several choices waits for those that may still begin', async (t) => {
  const gateway = await world(t, 'chat', OPEN['chat']!.counted);
  const answer = await heard(gateway, '/chat/completions', {
    model: 'test/chat',
    n: 2,
    messages: [{ role: 'user', content: 'hi' }],
  });
  await until(() => answer.text.includes('all'), 'the text');
  await beats(gateway, 'chat', 30, 0);
  assert.equal(answer.over, false);
  await answer.leave();
});

for (const [name, beat] of [
  ['chat', ': still here\n\n'],
  ['messages', 'event: ping\ndata: {"type":"ping"}\n\n'],
  ['messages', ': comment\n\n'],
] as const) {
  test(`${name}: a stream of ${JSON.stringify(beat)} only stalls, and the next endpoint answers`, async (t) => {
    const gateway = await startGateway(t, {
      providers: { [name]: { kind: name, timeouts: { stall: '5s' } }, spare: {} },
    });
    const beating = Array.from({ length: 12 }, (_, at) => [{ gate: `${name} ${at}` }, beat]).flat();
    const begun = name === 'messages' ? [messagesEvents({ text: 'x' })[0]!] : [];
    gateway.upstream.script(name, { headers: SSE, chunks: [...begun, beat, ...beating], end: 'stall' });
    gateway.upstream.script('spare', {
      headers: SSE,
      chunks: [chatChunk({ content: 'spare' }), chatFinish(), 'data: [DONE]\n\n'],
    });
    // The response head waits for visible output.
    const pending = heard(gateway, '/chat/completions', {
      model: `test/${name}`,
      models: ['test/spare'],
      messages: [{ role: 'user', content: 'hi' }],
    });
    await until(() => gateway.upstream.requests(name).length === 1, 'the first endpoint is asked');
    await beats(gateway, name, 8, 0);
    const answer = await pending;
    await until(() => answer.over, 'the end of the answer');
    assert.equal(readStreamed('chat', answer.text).text, 'spare');
  });
}

/** `POST /audio/speech` through a whole gateway: bytes as they arrive, their price, and every way of ending. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { until } from '../../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../../src/testing/upstream/upstream.ts';

const free = { prompt: '0', completion: '0' };
const model = (upstream_id: string, pricing: Record<string, unknown> = { ...free, input_character: '0.000015' }) => ({
  upstream_id,
  pricing,
  input_modalities: ['text'],
  output_modalities: ['speech'],
});

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: {
      tts: { kind: 'openai', model: model('tts-1') },
      spare: { kind: 'chat', model: { ...model('kokoro'), id: 'test/tts' } },
      mini: {
        kind: 'openai',
        model: model('gpt-4o-mini-tts', { prompt: '0.0000006', completion: '0', audio_output: '0.000012' }),
      },
      seconds: { kind: 'openai', model: model('tts-1', { ...free, output_second: '0.001' }) },
      groq: { kind: 'groq', model: model('canopylabs/orpheus-v1-english') },
      deepgram: { kind: 'deepgram', model: model('aura-2') },
      eleven: { kind: 'elevenlabs', model: model('eleven_flash_v2_5') },
      twin: { kind: 'openrouter', model: model('acme/speaker') },
      simulated: { kind: 'simulated', model: model('speech') },
      text: { kind: 'chat', model: { output_modalities: ['text'] } },
    },
  },
);

const bytes = (head: string, length = 3_000) =>
  Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(length, 0xfe)]);
const MP3 = bytes('ID3\x04');
const audio = (chunks: Answer['chunks'] = [MP3], more: Partial<Answer> = {}): Answer => ({
  headers: { 'content-type': 'audio/mpeg' },
  chunks,
  ...more,
});
const script = (key: string, ...answers: Answer[]) => gateway.upstream.script(key, answers);
const sentTo = (key: string) => gateway.upstream.requests(key).at(-1)!;
const speak = (body: Record<string, unknown>) => gateway.post('/audio/speech', { input: 'Grüße 🌍', ...body });

async function rowOf(response: Response): Promise<Record<string, unknown>> {
  const id = response.headers.get('x-generation-id')!;
  return until(async () => {
    const found = await gateway.get(`/generation?id=${id}`);
    if (found.status !== 200) return undefined;
    return ((await found.json()) as { data: Record<string, unknown> }).data;
  }, 'the row');
}

async function refused(response: Response, status: number, message: RegExp): Promise<void> {
  const { error } = (await response.json()) as { error: { message: string } };
  assert.equal(response.status, status, error.message);
  assert.match(error.message, message);
}

test('openai: the SDK gets the bytes of the upstream, and pays by character', async () => {
  script('tts', audio([MP3.subarray(0, 7), MP3.subarray(7)]));
  const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
  const response = await client.audio.speech.create({
    model: 'test/tts',
    input: 'Grüße 🌍',
    voice: 'coral',
    response_format: 'mp3',
    speed: 1.5,
  });
  assert.equal(response.headers.get('content-type'), 'audio/mpeg');
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), MP3);
  assert.deepEqual(sentTo('tts').json, {
    model: 'tts-1',
    input: 'Grüße 🌍',
    voice: 'coral',
    response_format: 'mp3',
    speed: 1.5,
  });
  const row = await rowOf(response);
  // Seven characters, whatever their bytes.
  assert.equal(row['total_cost'], 7 * 0.000015);
  assert.equal(row['api_type'], 'tts');
  assert.equal(row['provider_name'], 'Provider tts');
  assert.equal(row['streamed'], true);
});

test('@openrouter/sdk: its stream has every byte', async () => {
  script('tts', audio());
  const client = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });
  const stream = await client.tts.createSpeech({ speechRequest: { model: 'test/tts', input: 'hi' } });
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) chunks.push(chunk);
  assert.deepEqual(Buffer.concat(chunks), MP3);
  assert.equal((sentTo('tts').json as Record<string, unknown>)['response_format'], 'pcm');
});

test('bytes reach the client while the upstream is still speaking, and its end waits for the upstream', async () => {
  script('tts', audio([MP3.subarray(0, 100), { gate: 'rest' }, MP3.subarray(100)]));
  const reader = (await speak({ model: 'test/tts' })).body!.getReader();
  assert.deepEqual(Buffer.from((await reader.read()).value!), MP3.subarray(0, 100));
  gateway.upstream.open('rest');
  const rest: Uint8Array[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) rest.push(part.value);
  assert.deepEqual(Buffer.concat(rest), MP3.subarray(100));
});

test('an upstream that dies in the middle is a cut for the client and an error in the row, never a whole reply', async () => {
  for (const end of ['cut', 'reset'] as const) {
    script('tts', audio([MP3.subarray(0, 2_000), { gate: `dies-${end}` }], { end }));
    const response = await speak({ model: 'test/tts' });
    const reader = response.body!.getReader();
    assert.equal(response.status, 200);
    await reader.read();
    gateway.upstream.open(`dies-${end}`);
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    }, end);
    const row = await rowOf(response);
    assert.equal(row['finish_reason'], 'error');
    assert.equal(row['total_cost'], 7 * 0.000015);
  }
});

test('a reply without a length could be cut anywhere, so the next endpoint answers', async () => {
  script('tts', { raw: ['HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\nconnection: close\r\n\r\nID3'], end: 'cut' });
  script('spare', audio());
  const response = await speak({ model: 'test/tts' });
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), MP3);
  assert.equal((await rowOf(response))['provider_name'], 'Provider spare');
});

test('before the first byte the next endpoint takes over: errors, silence without a byte, and JSON instead of audio', async () => {
  const json = { 'content-type': 'application/json' };
  for (const answer of [
    { status: 503, headers: json, chunks: ['{"error":{"message":"busy"}}'] },
    audio([]),
    { headers: json, chunks: ['{"error":{"message":"no voice"}}'] },
    { headers: { 'content-type': 'text/html' }, chunks: ['<html>'] },
  ]) {
    script('tts', answer);
    script('spare', audio());
    const response = await speak({ model: 'test/tts' });
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), MP3);
    gateway.clock.jump(60_000);
  }
});

test('a client that disconnects ends the call of the upstream and pays for the text', async () => {
  script('tts', audio([MP3.subarray(0, 100), { gate: 'never' }]));
  const asked = gateway.upstream.requests('tts').length;
  const aborting = new AbortController();
  const response = await fetch(`${gateway.api}/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/tts', input: 'hello' }),
    signal: aborting.signal,
  });
  await response.body!.getReader().read();
  aborting.abort();
  await until(() => gateway.upstream.requests('tts')[asked]?.closedEarlyAt, 'the upstream sees the end');
  const row = await rowOf(response);
  assert.equal(row['cancelled'], true);
  assert.equal(row['total_cost'], 0.000075);
});

test('models that report tokens are asked for events, and the client still gets bytes', async () => {
  const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
  const events = [
    event({ type: 'speech.audio.delta', audio: MP3.subarray(0, 99).toString('base64') }),
    event({ type: 'speech.audio.delta', audio: MP3.subarray(99).toString('base64') }),
    event({ type: 'speech.audio.done', usage: { input_tokens: 10, output_tokens: 200, total_tokens: 210 } }),
  ];
  const headers = { 'content-type': 'text/event-stream' };
  script('mini', { headers, chunks: events });
  const response = await speak({ model: 'test/mini', response_format: 'mp3', instructions: 'Whisper.' });
  assert.equal(response.headers.get('content-type'), 'audio/mpeg');
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), MP3);
  assert.equal((await rowOf(response))['total_cost'], 10 * 0.0000006 + 200 * 0.000012);
  const sent = sentTo('mini').json as Record<string, unknown>;
  assert.equal(sent['stream_format'], 'sse');
  assert.equal(sent['instructions'], 'Whisper.');
  script('mini', { headers, chunks: events.slice(0, 2) });
  await assert.rejects((await speak({ model: 'test/mini' })).arrayBuffer());
});

test('a price per second counts started seconds of samples', async () => {
  script('seconds', { headers: { 'content-type': 'audio/pcm' }, chunks: [Buffer.alloc(48_000), Buffer.alloc(2)] });
  const response = await speak({ model: 'test/seconds' });
  assert.equal((await response.arrayBuffer()).byteLength, 48_002);
  assert.equal((await rowOf(response))['total_cost'], 0.002);
});

test('each service is asked in its own format', async () => {
  const ask = async (name: string, body: Record<string, unknown> = {}) => {
    script(name, audio());
    const response = await speak({ model: `test/${name}`, ...body });
    assert.equal(response.status, 200, await response.text());
    const { path, json, headers } = sentTo(name);
    return { path, json, headers };
  };
  const deepgram = await ask('deepgram', { voice: 'thalia', response_format: 'opus', speed: 0.9 });
  assert.equal(deepgram.path, '/speak?model=aura-2-thalia-en&encoding=opus&container=ogg&speed=0.9');
  assert.deepEqual(deepgram.json, { text: 'Grüße 🌍' });
  assert.match(deepgram.headers.authorization!, /^Token /);
  const eleven = await ask('eleven', { voice: 'a/b', response_format: 'mp3', speed: 1.1 });
  assert.equal(eleven.path, '/text-to-speech/a%2Fb/stream?output_format=mp3_44100_128');
  assert.deepEqual(eleven.json, { text: 'Grüße 🌍', model_id: 'eleven_flash_v2_5', voice_settings: { speed: 1.1 } });
  assert.ok(eleven.headers['xi-api-key']);
  assert.deepEqual((await ask('groq', { voice: 'troy' })).json, {
    model: 'canopylabs/orpheus-v1-english',
    input: 'Grüße 🌍',
    voice: 'troy',
    response_format: 'wav',
  });
  const references = [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }];
  const { user, ...twin } = (await ask('twin', { input_references: references, user: 'someone' })).json as Record<
    string,
    unknown
  >;
  assert.deepEqual(twin, {
    model: 'acme/speaker',
    input: 'Grüße 🌍',
    response_format: 'pcm',
    input_references: references,
  });
  assert.notEqual(user, 'someone');
});

test('what no endpoint can do is 400 with the field, and nothing is asked', async () => {
  const asked = gateway.upstream.requests().length;
  for (const [body, path] of [
    [{ model: 'test/groq', voice: 'x', response_format: 'opus' }, 'response_format'],
    [{ model: 'test/groq' }, 'voice'],
    [{ model: 'test/eleven', speed: 3 }, 'speed'],
    [{ model: 'test/deepgram', voice: 'a', instructions: 'Slowly.' }, 'instructions'],
    [{ model: 'test/tts', input_references: [{ type: 'text', text: 'a' }] }, 'input_references'],
    [{ model: 'test/tts', input_references: [{ type: 'text' }] }, 'input_references[0].text'],
    [{ model: 'test/tts', input: ' \n' }, 'input'],
    [{ model: 'test/tts', input: undefined }, 'input'],
    [{ model: 'test/tts', voice: { name: 'x' } }, 'voice.id'],
    [{ model: 'test/tts', voice: 7 }, 'voice'],
    [{ model: 'test/tts', response_format: 'mp4' }, 'response_format'],
    [{ model: 'test/tts', speed: 0 }, 'speed'],
    [{ model: 'test/tts', stream_format: 'sse' }, 'stream_format'],
  ] as const) {
    await refused(await speak(body), 400, new RegExp(`(?:^|: )${path.replace(/[[\].]/g, '\\$&')}:? `));
  }
  const status = async (model: string) => (await speak({ model })).status;
  assert.equal(await status('test/text'), 400);
  const chat = { model: 'test/tts', messages: [{ role: 'user', content: 'a' }] };
  assert.equal((await gateway.post('/chat/completions', chat)).status, 400);
  assert.equal(gateway.upstream.requests().length, asked);
});

test('a key with a limit below the price of the text is refused before anything is asked', async () => {
  const created = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'small', limit: 0.0001 }),
  });
  const { key } = (await created.json()) as { key: string };
  script('tts', audio());
  const say = (input: string) =>
    gateway.post('/audio/speech', { model: 'test/tts', input }, { authorization: `Bearer ${key}` });
  assert.equal((await say('a'.repeat(7))).status, 402);
  const allowed = await say('a'.repeat(6));
  assert.equal(allowed.status, 200);
  await allowed.arrayBuffer();
});

test('the simulated model speaks without an account, any length', async () => {
  const input = 'x'.repeat(500);
  const response = await speak({ model: 'test/simulated', input, response_format: 'wav' });
  assert.equal(response.headers.get('content-type'), 'audio/wav');
  const spoken = Buffer.from(await response.arrayBuffer());
  assert.equal(spoken.length, 44 + 500 * 960);
  assert.equal(spoken.readUInt32LE(40), 500 * 960);
});

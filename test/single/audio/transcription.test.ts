/** `POST /audio/transcriptions` and `/audio/translations`: JSON, forms, every reply format, streams and prices. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI, { toFile } from 'openai';
import { until } from '../../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../../src/testing/gateway/gateway.ts';
import { startGuarded } from '../../guardrails/guarded.ts';

const free = { prompt: '0', completion: '0' };
const model = (upstream_id: string, pricing: Record<string, unknown> = { ...free, input_second: '0.0001' }) => ({
  upstream_id,
  pricing,
  input_modalities: ['audio'],
  output_modalities: ['transcription'],
});

const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});
const scene = await startGuarded(
  { after: (close: unknown) => void closing.push(close as () => unknown) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    providers: {
      whisper: { kind: 'openai', model: model('whisper-1') },
      tokens: {
        kind: 'openai',
        model: model('gpt-4o-transcribe', { prompt: '0.0000025', audio: '0.000006', completion: '0.00001' }),
      },
      groq: { kind: 'groq', model: model('whisper-large-v3') },
      deepgram: { kind: 'deepgram', model: model('nova-3') },
      eleven: { kind: 'elevenlabs', model: model('scribe_v1') },
      twin: { kind: 'openrouter', model: model('acme/listener') },
      simulated: { kind: 'simulated', model: model('transcription') },
      voice: {
        kind: 'simulated',
        model: { ...model('speech'), pricing: free, output_modalities: ['speech'] },
      },
    },
  },
);
const { gateway } = scene;
const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
const openrouter = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });

/** Two seconds of silence. */
const WAV = Buffer.alloc(44 + 16_000);
WAV.write('RIFF....WAVEfmt ', 0, 'latin1');
WAV.writeUInt32LE(16, 16);
WAV.writeUInt16LE(1, 20);
WAV.writeUInt16LE(1, 22);
WAV.writeUInt32LE(4_000, 24);
WAV.writeUInt32LE(8_000, 28);
WAV.writeUInt16LE(16, 34);
WAV.write('data', 36, 'latin1');
WAV.writeUInt32LE(16_000, 40);
const speech = () => toFile(WAV, 'speech.wav', { type: 'audio/wav' });
const input_audio = { data: WAV.toString('base64'), format: 'wav' };

const json = { 'content-type': 'application/json' };
const script = (key: string, body: unknown) =>
  gateway.upstream.script(key, [{ headers: json, chunks: [JSON.stringify(body)] }]);
const sentTo = (key: string) => gateway.upstream.requests(key).at(-1)!;

/** The parts of a form that was sent, files as their lengths. */
async function formSentTo(key: string): Promise<[string, string | number][]> {
  const { body, headers } = sentTo(key);
  const type = { 'content-type': headers['content-type']! };
  const form = await new Response(body as Buffer<ArrayBuffer>, { headers: type }).formData();
  return [...form].map(([name, value]) => [name, typeof value === 'string' ? value : value.size]);
}

async function rowOf(id: string, key?: string): Promise<Record<string, unknown>> {
  return until(async () => {
    const found = await gateway.get(`/generation?id=${id}`, key);
    if (found.status !== 200) return undefined;
    return ((await found.json()) as { data: Record<string, unknown> }).data;
  }, 'the row');
}

const VERBOSE = {
  text: 'Hello. World!',
  language: 'english',
  duration: 1.6,
  segments: [
    { id: 0, start: 0, end: 0.8, text: ' Hello.', avg_logprob: -0.2 },
    { id: 1, start: 0.8, end: 3661.5, text: ' World!' },
  ],
  words: [{ word: 'Hello', start: 0, end: 0.4 }],
};

test('openai: the SDK uploads a form, gets the text, and pays by started second', async () => {
  script('whisper', { text: 'Hello.', usage: { type: 'duration', seconds: 2 } });
  const { data, response } = await openai.audio.transcriptions
    .create({ model: 'test/whisper', file: await speech(), language: 'en', prompt: 'names: Ann', temperature: 0.2 })
    .withResponse();
  assert.equal(data.text, 'Hello.');
  assert.partialDeepStrictEqual(data.usage, { type: 'duration', seconds: 2, cost: 0.0002 });
  assert.deepEqual(await formSentTo('whisper'), [
    ['model', 'whisper-1'],
    ['response_format', 'json'],
    ['language', 'en'],
    ['prompt', 'names: Ann'],
    ['temperature', '0.2'],
    ['file', WAV.length],
  ]);
  const row = await rowOf(response.headers.get('x-generation-id')!);
  assert.equal(row['api_type'], 'stt');
  assert.equal(row['total_cost'], 0.0002);
});

test('openai: every reply format that the SDK knows', async () => {
  const ask = async (response_format: 'text' | 'srt' | 'vtt' | 'verbose_json') => {
    script('whisper', VERBOSE);
    return openai.audio.transcriptions.create({
      model: 'test/whisper',
      file: await speech(),
      response_format,
      ...(response_format === 'verbose_json' && { timestamp_granularities: ['word', 'segment'] }),
    });
  };
  assert.equal(await ask('text'), 'Hello. World!\n');
  assert.equal(
    await ask('srt'),
    '1\n00:00:00,000 --> 00:00:00,800\nHello.\n\n2\n00:00:00,800 --> 01:01:01,500\nWorld!\n\n',
  );
  assert.equal(
    await ask('vtt'),
    'WEBVTT\n\n00:00:00.000 --> 00:00:00.800\nHello.\n\n00:00:00.800 --> 01:01:01.500\nWorld!\n\n',
  );
  const { usage, ...verbose } = (await ask('verbose_json')) as unknown as Record<string, unknown>;
  assert.deepEqual(verbose, { task: 'transcribe', ...VERBOSE });
  assert.partialDeepStrictEqual(usage, { type: 'duration', seconds: 2, cost: 0.0002 });
  assert.deepEqual(
    (await formSentTo('whisper')).filter(([name]) => name.startsWith('timestamp')),
    [
      ['timestamp_granularities[]', 'segment'],
      ['timestamp_granularities[]', 'word'],
    ],
  );
});

test('openai: settings of an object arrive as the SDK sends them, from forms and from JSON', async () => {
  const chunking_strategy = { type: 'server_vad', threshold: 0.5 } as const;
  script('whisper', { text: 'Hello.' });
  await openai.audio.transcriptions.create({ model: 'test/whisper', file: await speech(), chunking_strategy });
  const arrived = async () => (await formSentTo('whisper')).filter(([name]) => name.startsWith('chunking'));
  const settings = [
    ['chunking_strategy[type]', 'server_vad'],
    ['chunking_strategy[threshold]', '0.5'],
  ];
  assert.deepEqual(await arrived(), settings);
  script('whisper', { text: 'Hello.' });
  await gateway.post('/audio/transcriptions', { model: 'test/whisper', input_audio, chunking_strategy });
  assert.deepEqual(await arrived(), settings);
});

test('openai: translations', async () => {
  script('whisper', { text: 'Good day.', usage: { type: 'duration', seconds: 1 } });
  const { text } = await openai.audio.translations.create({ model: 'test/whisper', file: await speech() });
  assert.equal(text, 'Good day.');
  assert.equal(sentTo('whisper').path, '/audio/translations');
});

const usage = { type: 'tokens', input_tokens: 100, output_tokens: 20, input_token_details: { audio_tokens: 90 } };
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const EVENTS = [
  event({ type: 'transcript.text.delta', delta: 'Hel' }),
  event({ type: 'transcript.text.delta', delta: 'lo.' }),
  event({ type: 'transcript.text.done', text: 'Hello.', usage }),
];
const COST = 10 * 0.0000025 + 90 * 0.000006 + 20 * 0.00001;

test('openai: a stream has the deltas as they come, then the text with usage and cost', async () => {
  gateway.upstream.script('tokens', [
    { headers: { 'content-type': 'text/event-stream' }, chunks: [EVENTS[0]!, { gate: 'more' }, ...EVENTS.slice(1)] },
  ]);
  const stream = await openai.audio.transcriptions.create({
    model: 'test/tokens',
    file: await speech(),
    stream: true,
    include: ['logprobs'],
  });
  const seen: unknown[] = [];
  for await (const each of stream) {
    seen.push(each.type === 'transcript.text.delta' ? each.delta : each);
    gateway.upstream.open('more');
  }
  const [first, second, done] = seen as [string, string, { text: string; usage: { cost: number } }];
  assert.deepEqual([first, second, done.text], ['Hel', 'lo.', 'Hello.']);
  assert.equal(done.usage.cost, COST);
  const form = await formSentTo('tokens');
  assert.ok(form.some(([name, value]) => name === 'stream' && value === 'true'));
  assert.ok(form.some(([name, value]) => name === 'include[]' && value === 'logprobs'));
});

test('a service that does not stream is streamed in one piece, and a stream that breaks off ends with an error', async () => {
  script('whisper', { text: 'Hello.' });
  const whole = await gateway.post('/audio/transcriptions', { model: 'test/whisper', input_audio, stream: true });
  const types = [...(await whole.text()).matchAll(/"type":"(transcript[^"]*)"/g)].map(([, type]) => type);
  assert.deepEqual(types, ['transcript.text.delta', 'transcript.text.done']);
  gateway.upstream.script('tokens', [
    { headers: { 'content-type': 'text/event-stream' }, chunks: EVENTS.slice(0, 2), end: 'cut' },
  ]);
  const cut = await gateway.post('/audio/transcriptions', { model: 'test/tokens', input_audio, stream: true });
  const text = await cut.text();
  assert.match(text, /"type":"error"/);
  assert.ok(!text.includes('transcript.text.done'));
});

test('a stream may end without the blank line of its last event, and a bare error in it is the error', async () => {
  const headers = { 'content-type': 'text/event-stream' };
  const ask = async (chunks: string[]) => {
    gateway.upstream.script('tokens', [{ headers, chunks }]);
    return gateway.post('/audio/transcriptions', { model: 'test/tokens', input_audio, stream: true });
  };
  for (const end of ['\n', '']) {
    const text = await (await ask([...EVENTS.slice(0, 2), EVENTS[2]!.trimEnd() + end])).text();
    assert.match(text, /transcript\.text\.done/);
    assert.ok(!text.includes('"type":"error"'), text);
  }
  const bare = await ask(['{"error":{"message":"the audio is too long","type":"invalid_request_error","code":null}}']);
  assert.match(await bare.text(), /the audio is too long/);
});

test('@openrouter/sdk: JSON and form pass its schemas', async () => {
  script('whisper', VERBOSE);
  const asJson = await openrouter.stt.createTranscription({
    sttRequest: { model: 'test/whisper', inputAudio: { data: input_audio.data, format: 'wav' } },
  });
  assert.equal((asJson as { text: string }).text, 'Hello. World!');
  script('whisper', VERBOSE);
  const asForm = await openrouter.stt.createTranscriptionMultipart({
    requestBody: { model: 'test/whisper', file: { fileName: 'a.wav', content: WAV } },
  });
  assert.equal((asForm as { usage: { cost: number } }).usage.cost, 0.0002);
});

test('each service is asked in its own format, and its times come back in ours', async () => {
  const ask = async (name: string, reply: unknown, more: Record<string, unknown> = {}) => {
    script(name, reply);
    const body = { model: `test/${name}`, input_audio, response_format: 'verbose_json', ...more };
    const response = await gateway.post('/audio/transcriptions', body);
    const answer = (await response.json()) as Record<string, unknown>;
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer;
  };
  const words = [
    { word: 'hi', punctuated_word: 'Hi.', start: 0.1, end: 0.3, confidence: 0.9, speaker: 1 },
    { word: 'there', punctuated_word: 'There', start: 0.4, end: 0.8, confidence: 0.8, speaker: 1 },
  ];
  const deepgram = await ask(
    'deepgram',
    {
      metadata: { duration: 1.25, request_id: 'r1' },
      results: {
        channels: [{ detected_language: 'en', alternatives: [{ transcript: 'Hi. There', confidence: 0.95, words }] }],
      },
    },
    { timestamp_granularities: ['segment', 'word'], provider: { options: { deepgram: { diarize: true } } } },
  );
  assert.equal(sentTo('deepgram').path, '/listen?model=nova-3&smart_format=true&detect_language=true&diarize=true');
  assert.deepEqual(sentTo('deepgram').body, WAV);
  assert.equal(sentTo('deepgram').headers['content-type'], 'audio/wav');
  assert.deepEqual(deepgram['segments'], [
    { id: 0, start: 0.1, end: 0.3, text: 'Hi.' },
    { id: 1, start: 0.4, end: 0.8, text: 'There' },
  ]);
  assert.deepEqual((deepgram['words'] as unknown[])[0], {
    word: 'Hi.',
    start: 0.1,
    end: 0.3,
    confidence: 0.9,
    speaker: 1,
  });
  assert.partialDeepStrictEqual(deepgram['usage'], { type: 'duration', seconds: 2, cost: 0.0002 });
  const eleven = await ask('eleven', {
    language_code: 'eng',
    language_probability: 0.98,
    text: 'Hi there',
    words: [
      { text: 'Hi', start: 0, end: 0.2, type: 'word', speaker_id: 'speaker_0' },
      { text: ' ', start: 0.2, end: 0.3, type: 'spacing' },
      { text: 'there', start: 0.3, end: 0.5, type: 'word', speaker_id: 'speaker_0' },
    ],
  });
  assert.deepEqual(eleven['segments'], [{ id: 0, start: 0, end: 0.5, text: 'Hi there' }]);
  // It reports no duration, but the bytes show it.
  assert.partialDeepStrictEqual(eleven['usage'], { type: 'duration', seconds: 2, cost: 0.0002 });
  assert.deepEqual((await formSentTo('eleven')).slice(0, 2), [
    ['model_id', 'scribe_v1'],
    ['timestamps_granularity', 'word'],
  ]);
  await ask('groq', VERBOSE, { response_format: 'json' });
  assert.ok((await formSentTo('groq')).some(([, value]) => value === 'verbose_json'));
  await ask('twin', VERBOSE);
  assert.deepEqual((sentTo('twin').json as Record<string, unknown>)['input_audio'], input_audio);
});

test('what was spoken by the simulated model is written down by the other', async () => {
  for (const response_format of ['pcm', 'wav']) {
    const spoken = await gateway.post('/audio/speech', { model: 'test/voice', input: 'Grüße 🌍', response_format });
    const data = Buffer.from(await spoken.arrayBuffer()).toString('base64');
    const body = { model: 'test/simulated', input_audio: { data, format: response_format } };
    const written = await gateway.post('/audio/transcriptions', body);
    assert.equal(((await written.json()) as { text: string }).text, 'Grüße 🌍');
  }
});

test('guardrail filters redact or block the text, also where a match lies across segments and words', async () => {
  const secret = {
    text: 'Call 4111 1111 1111 1111 now.',
    duration: 2,
    segments: [
      { id: 0, start: 0, end: 1, text: ' Call 4111 1111' },
      { id: 1, start: 1, end: 2, text: ' 1111 1111 now.' },
    ],
    words: [{ word: '4111', start: 0, end: 1 }],
  };
  const redacting = await scene.guarded({
    content_filters: [{ pattern: '(\\d{4} ){3}\\d{4}', action: 'redact', label: 'card', apply_to: ['response'] }],
  });
  for (const more of [
    {},
    { response_format: 'srt' },
    { response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] },
    { stream: true },
  ]) {
    script('whisper', secret);
    const response = await gateway.post(
      '/audio/transcriptions',
      { model: 'test/whisper', input_audio, ...more },
      { authorization: `Bearer ${redacting.token}` },
    );
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.match(text, /Call .*now/);
    assert.doesNotMatch(text, /4111/, text);
  }
  const blocking = await scene.guarded({
    content_filters: [{ pattern: '(\\d{4} ){3}\\d{4}', action: 'block', apply_to: ['response'] }],
  });
  script('whisper', secret);
  const blocked = await gateway.post(
    '/audio/transcriptions',
    { model: 'test/whisper', input_audio },
    { authorization: `Bearer ${blocking.token}` },
  );
  assert.equal(blocked.status, 403, await blocked.text());
  const row = await rowOf(blocked.headers.get('x-generation-id')!, blocking.token);
  // The service has done its work.
  assert.equal(row['total_cost'], 0.0002);
});

test('bad input names the field', async () => {
  const refused = async (response: Response, field: string) => {
    const { error } = (await response.json()) as { error: { message: string } };
    assert.equal(response.status, 400, error.message);
    assert.ok(error.message.includes(field), `${error.message} names ${field}`);
  };
  const ask = (body: Record<string, unknown>) =>
    gateway.post('/audio/transcriptions', { model: 'test/whisper', input_audio, ...body });
  await refused(await ask({ input_audio: undefined }), 'input_audio');
  await refused(await ask({ input_audio: { data: 'data:audio/wav;base64,AAAA', format: 'wav' } }), 'input_audio.data');
  await refused(await ask({ input_audio: { data: 'AAAA' } }), 'input_audio.format');
  await refused(await ask({ response_format: 'xml' }), 'response_format');
  await refused(await ask({ stream: true, response_format: 'srt' }), 'response_format');
  await refused(await ask({ timestamp_granularities: ['word'] }), 'timestamp_granularities');
  await refused(await ask({ model: 'test/tokens', response_format: 'srt' }), 'response_format');
  await refused(await ask({ model: 'test/deepgram', prompt: 'a' }), 'prompt');
  await refused(await ask({ model: 'test/groq', keywords: ['a'] }), 'keywords');
  const form = (parts: [string, string | Blob][]) => {
    const body = new FormData();
    for (const [name, value] of parts) body.append(name, value);
    return fetch(`${gateway.api}/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INFERENCE_KEY}` },
      body,
    });
  };
  const named: [string, string] = ['model', 'test/whisper'];
  const file: [string, Blob] = ['file', new Blob([WAV])];
  await refused(await form([named]), 'file');
  await refused(await form([named, file, file]), 'file');
  await refused(await form([named, ['file', new Blob([])]]), 'file');
  await refused(await form([named, file, ['mask', new Blob(['a'])]]), 'mask');
  await refused(await form([file]), 'model');
  await refused(await form([named, named, file]), 'model');
  await refused(await form([named, file, ['temperature', 'warm']]), 'temperature');
  const settings: [string, string][] = [
    ['chunking_strategy', 'auto'],
    ['chunking_strategy[type]', 'server_vad'],
  ];
  for (const parts of [settings, settings.toReversed()]) {
    await refused(await form([named, file, ...parts]), 'chunking_strategy must be given once');
  }
  await refused(
    await fetch(`${gateway.api}/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\ntest',
    }),
    'malformed',
  );
  const plain = await fetch(`${gateway.api}/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'text/plain' },
    body: 'hi',
  });
  assert.equal(plain.status, 415);
});

test('a key with a limit below the bound of the audio is refused before anything is sent', async () => {
  const created = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'small', limit: 0.0005 }),
  });
  const { key } = (await created.json()) as { key: string };
  const asked = gateway.upstream.requests('whisper').length;
  const body = { model: 'test/whisper', input_audio };
  assert.equal((await gateway.post('/audio/transcriptions', body, { authorization: `Bearer ${key}` })).status, 402);
  assert.equal(gateway.upstream.requests('whisper').length, asked);
});

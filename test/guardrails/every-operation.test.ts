/**
 * There is no operation through which a guardrail, a filter or a budget could be gone round: whatever asks a model is
 * governed, and an operation that this file does not know fails it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { operations } from '../../src/operations.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { accessToken, claimsAt, makeKey, sign } from '../sign-in/federation/issuer.ts';
import type { Json } from '../workspaces/control.ts';
import { type GuardedKey, postWith, startGuarded } from './guarded.ts';

const pricing = { prompt: '0.000003', completion: '0.000015', request: '0.01' };
const chat = { kind: 'chat', model: { pricing } };
let scene: Awaited<ReturnType<typeof startGuarded>>;
const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

before(async () => {
  scene = await startGuarded(
    { after: (close: unknown) => void closing.push(close as () => unknown) },
    {
      providers: {
        text: chat,
        vectors: { kind: 'openai', model: { pricing, output_modalities: ['embeddings'] } },
        ranks: { kind: 'cohere', model: { pricing, output_modalities: ['rerank'] } },
        pictures: {
          kind: 'openai',
          model: {
            upstream_id: 'gpt-image-1.5',
            pricing: { ...pricing, image_output: '0.00004' },
            output_modalities: ['image'],
          },
        },
        listeners: {
          kind: 'openai',
          model: { upstream_id: 'whisper-1', pricing, output_modalities: ['transcription'] },
        },
        judges: { kind: 'openai', model: { pricing, output_modalities: ['moderation'] } },
        films: { kind: 'openai', model: { pricing, output_modalities: ['video'] } },
        voices: { kind: 'openai', model: { upstream_id: 'tts-1', pricing, output_modalities: ['speech'] } },
      },
    },
  );
  const reply = {
    id: 'x',
    choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
  };
  for (const name of ['text', 'vectors', 'ranks', 'pictures', 'voices', 'listeners', 'judges', 'films']) {
    scene.gateway.upstream.script(name, [{ ...wholeOf(reply), repeat: true }]);
  }
});

const contents = (text: string): Json[] => [
  { contents: [{ role: 'user', parts: [{ text }] }], generationConfig: { maxOutputTokens: 9 } },
  {
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    systemInstruction: { parts: [{ text }] },
    generationConfig: { maxOutputTokens: 9 },
  },
  {
    contents: [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result: text } } }] },
    ],
    tools: [{ functionDeclarations: [{ name: 'f', description: 'f', parameters: { type: 'OBJECT' } }] }],
    generationConfig: { maxOutputTokens: 9 },
  },
];

const content = (route: string, at: string) => ({ route, at, model: 'test/text', bodies: contents });

const decision = (route: string, at = route) => ({
  ...{ route, at, model: 'test/text' },
  bodies: (text: string): Json[] => {
    const question = { type: 'noul', instructions: 'Is it?' };
    return [
      { state: text, questions: { q: question } },
      { state: { a: [text] }, questions: { q: question } },
      { state: 'x', questions: { q: { ...question, instructions: text } } },
      { state: 'x', questions: { q: { type: 'choice', instructions: 'Which?', criteria: { a: text, b: null } } } },
    ];
  },
});

const input_references = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }];

/** By operation: where it is (`at`: where it is asked, if that is not its route), which model serves it, and its body with the text in each place that a person writes. */
const ASKED: Record<string, { route: string; at?: string; model: string; bodies: (text: string) => Json[] }> = {
  createChatCompletion: {
    route: '/chat/completions',
    model: 'test/text',
    bodies: (text) => [
      { messages: [{ role: 'user', content: text }], max_tokens: 9 },
      { messages: [{ role: 'system', content: [{ type: 'text', text }] }], max_tokens: 9 },
      {
        messages: [{ role: 'user', content: 'hi' }],
        tools: [{ type: 'function', function: { name: 'f', description: text, parameters: { type: 'object' } } }],
        max_tokens: 9,
      },
    ],
  },
  createCompletion: {
    route: '/completions',
    model: 'test/text',
    bodies: (text) => [{ prompt: text, max_tokens: 9 }],
  },
  generateContent: content('/models/{model}', '/models/test%2Ftext:generateContent'),
  generateContentOfAuthor: content('/models/{author}/{model}', '/models/test/text:generateContent'),
  generateContentBeta: content('/v1beta/models/{model}', '/../../v1beta/models/test%2Ftext:generateContent'),
  generateContentOfAuthorBeta: content(
    '/v1beta/models/{author}/{model}',
    '/../../v1beta/models/test/text:streamGenerateContent',
  ),
  createMessage: {
    route: '/messages',
    model: 'test/text',
    bodies: (text) => [
      { messages: [{ role: 'user', content: text }], max_tokens: 9 },
      { messages: [{ role: 'user', content: 'hi' }], system: text, max_tokens: 9 },
    ],
  },
  countMessageTokens: {
    route: '/messages/count_tokens',
    model: 'test/text',
    bodies: (text) => [{ messages: [{ role: 'user', content: text }] }],
  },
  createResponse: {
    route: '/responses',
    model: 'test/text',
    bodies: (text) => [
      { input: text, max_output_tokens: 16 },
      { input: 'hi', instructions: text, max_output_tokens: 16 },
    ],
  },
  compactResponse: {
    route: '/responses/compact',
    model: 'test/text',
    bodies: (text) => [{ input: text }, { input: [{ role: 'user', content: 'hi' }], instructions: text }],
  },
  countResponseTokens: {
    route: '/responses/input_tokens',
    model: 'test/text',
    bodies: (text) => [{ input: text }],
  },
  createEmbedding: {
    route: '/embeddings',
    model: 'test/vectors',
    bodies: (text) => [{ input: text }, { input: ['hi', text] }],
  },
  createRerank: {
    route: '/rerank',
    model: 'test/ranks',
    bodies: (text) => [
      { query: text, documents: ['d'] },
      { query: 'q', documents: ['d', text] },
    ],
  },
  createSystemOne: decision('/systemone'),
  createDecision: decision('/api/alpha/decisions', '/../../api/alpha/decisions'),
  createImage: { route: '/images', model: 'test/pictures', bodies: (text) => [{ prompt: text }] },
  createImageGeneration: { route: '/images/generations', model: 'test/pictures', bodies: (text) => [{ prompt: text }] },
  createModeration: {
    route: '/moderations',
    model: 'test/judges',
    bodies: (text) => [{ input: text }, { input: ['hi', text] }],
  },
  editImage: { route: '/images/edits', model: 'test/pictures', bodies: (text) => [{ prompt: text, input_references }] },
  varyImage: {
    route: '/images/variations',
    model: 'test/pictures',
    bodies: (text) => [{ prompt: text, input_references }],
  },
  createVideo: {
    route: '/videos',
    model: 'test/films',
    bodies: (text) => [{ prompt: text }, { prompt: 'x', provider: { options: { films: { hints: [text] } } } }],
  },
  createTranscription: {
    route: '/audio/transcriptions',
    model: 'test/listeners',
    bodies: (text) => [{ input_audio: { data: 'AAAA', format: 'wav' }, prompt: text }],
  },
  createTranslation: {
    route: '/audio/translations',
    model: 'test/listeners',
    bodies: (text) => [{ input_audio: { data: 'AAAA', format: 'wav' }, prompt: text }],
  },
  createSpeech: {
    route: '/audio/speech',
    model: 'test/voices',
    bodies: (text) => [
      { input: text },
      { input: 'hi', instructions: text },
      { input: 'hi', provider: { options: { elevenlabs: { previous_text: text } } } },
    ],
  },
};

/** What they ask for, if anything, runs later: test/batches/limits.test.ts shows that guardrails hold for each item. */
const BATCHES = [
  '/batches',
  '/batches/{id}/cancel',
  '/batches/callback-secret/rotate',
  '/messages/batches',
  '/messages/batches/{id}/cancel',
];

/** Vectors come from requests of the same key to `/embeddings`, shown in test/vector-stores/vector-stores.test.ts. */
const VECTOR_STORES = [
  '/vector_stores',
  '/vector_stores/{vector_store_id}',
  '/vector_stores/{vector_store_id}/search',
  '/vector_stores/{vector_store_id}/files',
  '/vector_stores/{vector_store_id}/files/{file_id}',
  '/vector_stores/{vector_store_id}/file_batches',
  '/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel',
];

/** A request to `/videos` with a previous job, governed as that; shown in test/single/videos.test.ts. */
const REMIX = '/videos/{jobId}/remix';

/** Interns ask models with keys of their own, through the operations above; the others ask none. */
const OTHERS = [
  '/responses/{response_id}/cancel',
  '/conversations',
  '/conversations/{conversation_id}',
  '/conversations/{conversation_id}/items',
  '/interns',
  '/interns/{internId}/provision',
  '/interns/{internId}/suspend',
  '/interns/{internId}/invoke',
  '/interns/{internId}/chat/completions',
  '/vault/interns/{internId}/secrets/copy',
  '/containers/{container_id}/files/{file_id}/promote',
];

const every = async (
  key: Pick<GuardedKey, 'token'>,
  text: string,
  check: (name: string, answer: { status: number; body: Json; headers: Headers }) => void,
) => {
  for (const [name, { route, at = route, model, bodies }] of Object.entries(ASKED)) {
    for (const body of bodies(text)) check(name, await postWith(scene.gateway, key.token, at, { model, ...body }));
  }
};

test('every operation that asks a model is in the table', () => {
  const contracts = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0]);
  const asking = contracts.filter(
    ({ access: { kinds }, method }) =>
      kinds.includes('inference') && !kinds.includes('management') && method === 'POST',
  );
  const known = [...Object.values(ASKED).map(({ route }) => route), ...BATCHES, ...VECTOR_STORES, REMIX, ...OTHERS];
  assert.deepEqual(asking.map(({ path }) => path).sort(), known.sort());
});

test('a model that a guardrail does not allow is asked by no operation, under none of its names', async () => {
  const key = await scene.guarded({ allowed_models: ['test/elsewhere'] });
  const asked = () =>
    ['text', 'vectors', 'ranks', 'pictures', 'voices', 'listeners', 'judges', 'films'].map(
      (name) => scene.gateway.upstream.requests(name).length,
    );
  const earlier = asked();
  await every(key, 'hi', (name, { status, body }) =>
    assert.ok([403, 404].includes(status), `${name}: ${JSON.stringify(body)}`),
  );
  for (const model of ['TEST/TEXT', 'test/text:nitro', 'test/text:floor', 'text']) {
    const { status } = await key.post('/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }] });
    assert.ok(status >= 400 && status < 500, model);
  }
  const fallback = { models: ['test/text'], model: 'test/vectors', messages: [{ role: 'user', content: 'hi' }] };
  assert.ok((await key.post('/chat/completions', fallback)).status >= 400);
  assert.deepEqual(asked(), earlier);
});

test('a blocking filter sees user text in every operation and position', async () => {
  const key = await scene.guarded({ content_filters: [{ pattern: 'forbidden-[0-9]{4}', action: 'block' }] });
  await every(key, 'this is forbidden-1234 here', (name, { status, body }) => {
    assert.equal(status, 403, `${name}: ${JSON.stringify(body)}`);
    assert.match(JSON.stringify(body), /forbidden-\[0-9\]\{4\}/, name);
  });
});

const FREE = ['countMessageTokens', 'countResponseTokens'];

test('a spent limit refuses every operation that costs something', async () => {
  const key = await scene.control.keyIn(undefined, 'spent', { limit: 0.000001 });
  await every(key, 'hi', (name, { status, body }) => {
    if (FREE.includes(name)) assert.equal(status, 200, JSON.stringify(body));
    else assert.equal(status, 402, `${name}: ${JSON.stringify(body)}`);
  });
});

test('an access token that was exchanged is governed in every operation as its key is', async () => {
  const { gateway, guarded, control } = scene;
  const issued = await makeKey('one', 'ES256');
  const { kty, crv, x, y } = issued.jwk as Record<string, string>;
  const tokenFor = async (keyHash: string) => {
    const rules = { audience: ['gatehouse'], claims: [{ name: 'sub', patterns: ['repo:*'] }], lifetimeMs: 60_000 };
    const keys = [{ kty: kty!, crv: crv!, x: x!, y: y!, kid: 'one' }];
    const policy = { id: 'ci', issuer: 'https://issuer.test', keys, keyHash, ...rules };
    gateway.app.reload({ ...gateway.config, federation: [policy] });
    return { token: await accessToken(gateway, await sign(issued, claimsAt(gateway.clock.now(), policy.issuer))) };
  };
  const filtered = await guarded({ content_filters: [{ pattern: 'forbidden-[0-9]{4}', action: 'block' }] });
  await every(await tokenFor(filtered.hash), 'this is forbidden-1234 here', (name, { status, body }) =>
    assert.equal(status, 403, `${name}: ${JSON.stringify(body)}`),
  );
  const narrowed = await guarded({ allowed_models: ['test/elsewhere'] });
  await every(await tokenFor(narrowed.hash), 'hi', (name, { status, body }) =>
    assert.ok([403, 404].includes(status), `${name}: ${JSON.stringify(body)}`),
  );
  const spent = await control.keyIn(undefined, 'spent', { limit: 0.000001 });
  await every(await tokenFor(spent.hash), 'hi', (name, { status, body }) =>
    assert.equal(status, FREE.includes(name) ? 200 : 402, `${name}: ${JSON.stringify(body)}`),
  );
});

/** Every inference operation is subject to budgets: an exhausted budget stops each, and a new operation must be listed here. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { operations } from '../../src/operations.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, type Json } from './control.ts';

const PER_TOKEN = { prompt: '0.000003', completion: '0.000015' };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      text: { model: { pricing: PER_TOKEN } },
      vectors: { kind: 'openai', model: { pricing: PER_TOKEN, output_modalities: ['embeddings'] } },
      ranker: { kind: 'cohere', model: { pricing: { ...PER_TOKEN, request: '0.002' }, output_modalities: ['rerank'] } },
      painter: {
        kind: 'openai',
        model: {
          upstream_id: 'gpt-image-1.5',
          pricing: { prompt: '0', completion: '0', output_images: [{ price: '0.04' }] },
          output_modalities: ['image'],
        },
      },
      listener: {
        kind: 'openai',
        model: {
          upstream_id: 'whisper-1',
          pricing: { prompt: '0', completion: '0', input_second: '0.001' },
          output_modalities: ['transcription'],
        },
      },
      judge: { kind: 'openai', model: { pricing: PER_TOKEN, output_modalities: ['moderation'] } },
      film: {
        kind: 'openai',
        model: { pricing: { prompt: '0', completion: '0', output_second: '0.1' }, output_modalities: ['video'] },
      },
      speaker: {
        kind: 'openai',
        model: { pricing: { prompt: '0', completion: '0', input_character: '0.001' }, output_modalities: ['speech'] },
      },
    },
  },
);

const input_references = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }];
const messages = [{ role: 'user', content: 'hi' }];
const BODIES: Record<string, Json | 'free'> = {
  createChatCompletion: { model: 'test/text', messages },
  createMessage: { model: 'test/text', max_tokens: 100, messages },
  createResponse: { model: 'test/text', input: 'hi' },
  compactResponse: { model: 'test/text', input: 'hi' },
  createCompletion: { model: 'test/text', prompt: 'hi' },
  generateContent: { contents: [{ parts: [{ text: 'hi' }] }] },
  generateContentOfAuthor: { contents: [{ parts: [{ text: 'hi' }] }] },
  generateContentBeta: { contents: [{ parts: [{ text: 'hi' }] }] },
  generateContentOfAuthorBeta: { contents: [{ parts: [{ text: 'hi' }] }] },
  createSystemOne: {
    ...{ model: 'test/text', state: 'x', questions: { q: { type: 'noul', instructions: 'Is it?' } } },
  },
  createDecision: {
    ...{ model: 'test/text', state: 'x', questions: { q: { type: 'noul', instructions: 'Is it?' } } },
  },
  createEmbeddings: { model: 'test/vectors', input: 'hi' },
  rerank: { model: 'test/ranker', query: 'q', documents: ['d'] },
  createImage: { model: 'test/painter', prompt: 'p' },
  createImageGeneration: { model: 'test/painter', prompt: 'p' },
  createSpeech: { model: 'test/speaker', input: 'hi' },
  createVideo: { model: 'test/film', prompt: 'p' },
  // The request is one of createVideo, with a previous job (test/single/videos.test.ts).
  remixVideo: 'free',
  listVideos: 'free',
  deleteVideo: 'free',
  getVideo: 'free',
  getVideoContent: 'free',
  createModeration: { model: 'test/judge', input: 'hi' },
  editImage: { model: 'test/painter', prompt: 'p', input_references },
  varyImage: { model: 'test/painter', prompt: 'p', input_references },
  createTranscription: { model: 'test/listener', input_audio: { data: 'AAAA', format: 'wav' } },
  createTranslation: { model: 'test/listener', input_audio: { data: 'AAAA', format: 'wav' } },
  getResponse: 'free',
  listResponseInputItems: 'free',
  cancelResponse: 'free',
  createConversation: 'free',
  getConversation: 'free',
  updateConversation: 'free',
  deleteConversation: 'free',
  createConversationItems: 'free',
  listConversationItems: 'free',
  getConversationItem: 'free',
  deleteConversationItem: 'free',
  deleteResponse: 'free',
  // Costs nothing.
  countMessageTokens: 'free',
  countResponseTokens: 'free',
  // The budget refuses the items, one by one (test/batches/limits.test.ts).
  createBatch: 'free',
  listBatches: 'free',
  getBatch: 'free',
  getBatchResults: 'free',
  getBatchCallback: 'free',
  getBatchCallbackSecret: 'free',
  rotateBatchCallbackSecret: 'free',
  // Not a model's work.
  listVaultSecrets: 'free',
  storeVaultSecret: 'free',
  deleteVaultSecret: 'free',
  listInternVaultSecrets: 'free',
  listEffectiveVaultSecrets: 'free',
  storeInternVaultSecret: 'free',
  deleteInternVaultSecret: 'free',
  copyVaultSecretsToIntern: 'free',
  // The budget refuses the requests for vectors (test/vector-stores/vector-stores.test.ts).
  listVectorStores: 'free',
  createVectorStore: 'free',
  getVectorStore: 'free',
  updateVectorStore: 'free',
  deleteVectorStore: 'free',
  searchVectorStore: 'free',
  createVectorStoreFile: 'free',
  listVectorStoreFiles: 'free',
  getVectorStoreFile: 'free',
  updateVectorStoreFile: 'free',
  deleteVectorStoreFile: 'free',
  getVectorStoreFileContent: 'free',
  createVectorStoreFileBatch: 'free',
  getVectorStoreFileBatch: 'free',
  cancelVectorStoreFileBatch: 'free',
  listVectorStoreBatchFiles: 'free',
  listContainerFiles: 'free',
  getContainerFile: 'free',
  downloadContainerFile: 'free',
  promoteContainerFile: 'free',
  listInterns: 'free',
  createIntern: 'free',
  getIntern: 'free',
  updateIntern: 'free',
  deleteIntern: 'free',
  provisionIntern: 'free',
  suspendIntern: 'free',
  // Its agent asks models with the intern's key.
  createInternChatCompletion: 'free',
  invokeIntern: 'free',
  cancelBatch: 'free',
  deleteBatch: 'free',
  createMessageBatch: 'free',
  listMessageBatches: 'free',
  getMessageBatch: 'free',
  getMessageBatchResults: 'free',
  cancelMessageBatch: 'free',
  deleteMessageBatch: 'free',
};

/** Only the contracts are read. */
const contracts = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0]);
const inference = contracts.filter(
  ({ access: { kinds } }) => kinds.includes('inference') && !kinds.includes('management'),
);

/** Model and streaming are in the path of some, of which two are not below `/api/v1`. */
function askedAs({ path, root }: (typeof contracts)[number], stream: boolean) {
  if (!path.includes('{model}')) return { path: root ? `/../..${path}` : path, more: stream ? { stream } : {} };
  const name = path.includes('author') ? 'test/text' : 'test%2Ftext';
  const method = stream ? 'streamGenerateContent' : 'generateContent';
  return { path: `${root ? '/../../v1beta' : ''}/models/${name}:${method}`, more: {} };
}

test('every inference operation has a sample request here', () => {
  assert.deepEqual(inference.map(({ id }) => id).toSorted(), Object.keys(BODIES).toSorted());
});

test('a budget with nothing left refuses every inference operation with 402, and nothing is sent', async () => {
  const { call, made, keyIn } = controlOf(gateway);
  const { id } = await made({ name: 'Team', slug: 'team' });
  const { token } = await keyIn(id, 'theirs');
  for (const interval of ['lifetime', 'daily']) {
    await call('PUT', `/workspaces/team/budgets/${interval}`, { limit_usd: 0.000001 });
    for (const operation of inference) {
      const body = BODIES[operation.id];
      if (body === 'free') continue;
      for (const stream of [undefined, true]) {
        const { path, more } = askedAs(operation, stream === true);
        const answer = await call(operation.method, path, { ...body, ...more }, token);
        const told = `${operation.id}: ${JSON.stringify(answer.body)}`;
        assert.equal(answer.status, 402, told);
        assert.match(told, new RegExp(`${interval} budget of the workspace`));
      }
    }
    await call('DELETE', `/workspaces/team/budgets/${interval}`);
  }
  for (const name of ['text', 'vectors', 'ranker', 'painter', 'speaker', 'listener', 'judge', 'film'])
    assert.equal(gateway.upstream.requests(name).length, 0);
});

import { vendorOf } from '../formats/converse/index.ts';
import { bedrockEmbedding } from '../formats/embedding/index.ts';
import { rerankAdapter } from '../formats/rerank/index.ts';
import { bearer } from './bearer.ts';
import { converseFraming, eventStreamReady } from './bedrock-event-stream.ts';
import { nothing } from './bedrock-signer.ts';
import type { ProviderKind } from './provider.ts';

/** By `invoke`, which takes the body of the model's own vendor. */
const invokedRerank = rerankAdapter({
  path: (model) => `/model/${encodeURIComponent(model)}/invoke`,
  namesModel: false,
  maxDocuments: 1000,
  constants: (model) => (/\bcohere\./.test(model) ? { api_version: 2 } : {}),
});

/** Any service that speaks the converse form and takes bearer tokens: a gateway of one's own in front of Bedrock. */
export const converse: ProviderKind = {
  id: 'converse',
  name: 'Converse API',
  speaks: 'converse',
  headers: bearer,
  signer: () => ({ sign: () => nothing(eventStreamReady()) }),
  framing: (form) => (form === 'converse' ? converseFraming : undefined),
  origin: 'anthropic-claude-v1',
  originFor,
  dialect: {},
  embedding: bedrockEmbedding,
  rerank: invokedRerank,
};

/** Claude signs its thinking, behind this form as anywhere; what other models think is plain text that none takes back. */
export function originFor(model: string): ProviderKind['origin'] {
  const vendor = vendorOf(model);
  return vendor === undefined || vendor === 'anthropic' ? 'anthropic-claude-v1' : 'unknown';
}

import { vendorOf } from '../../formats/converse/index.ts';
import { bedrockEmbedding } from '../../formats/embedding/index.ts';
import { rerankAdapter } from '../../formats/rerank/index.ts';
import { bearer } from '../auth/bearer.ts';
import { nothing } from '../auth/bedrock-signer.ts';
import { converseFraming, eventStreamReady } from '../framing/bedrock-event-stream.ts';
import type { ProviderKind } from '../provider.ts';

/** By `invoke`, whose body follows the model's vendor. */
const invokedRerank = rerankAdapter({
  path: (model) => `/model/${encodeURIComponent(model)}/invoke`,
  namesModel: false,
  maxDocuments: 1000,
  constants: (model) => (/\bcohere\./.test(model) ? { api_version: 2 } : {}),
});

/** Any converse service with bearer tokens: a gateway in front of Bedrock. */
export const converse: ProviderKind = {
  id: 'converse',
  name: 'Converse API',
  speaks: 'converse',
  guide: { verifiedBy: 'recording', quirks: 'the plain format, for a gateway in front of Bedrock' },
  headers: bearer,
  signer: () => ({ sign: () => nothing(eventStreamReady()) }),
  framing: (format) => (format === 'converse' ? converseFraming : undefined),
  origin: 'anthropic-claude-v1',
  originFor,
  dialect: {},
  embedding: bedrockEmbedding,
  rerank: invokedRerank,
};

/** Claude signs its thinking in this format too. Other models' thinking is plain text, which none accepts back. */
function originFor(model: string): ProviderKind['origin'] {
  const vendor = vendorOf(model);
  return vendor === undefined || vendor === 'anthropic' ? 'anthropic-claude-v1' : 'unknown';
}

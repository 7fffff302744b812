/**
 * Operations of the Gemini API that this gateway does not serve, with their replacements. Google's clients call these
 * paths.
 */
import { isGoogle } from './google-client.ts';

/** By the first word below the version, without what follows a colon. */
const INSTEAD: Readonly<Record<string, string>> = {
  cachedContents: 'providers cache prefixes without it; send the whole context with each request',
  tunedModels: 'tune a model at its provider, and add it to the configuration',
  tuningJobs: 'tune a model at its provider, and add it to the configuration',
  batches: 'use POST /api/v1/batches',
  operations: 'use /api/v1/videos for videos and /api/v1/batches for batches',
  fileSearchStores: 'use /api/v1/vector_stores and the tool file_search',
  corpora: 'use /api/v1/vector_stores and the tool file_search',
  interactions: 'use generateContent, or /api/v1/responses for stored conversations',
  agents: 'use generateContent with tools',
  environments: 'use the tool svc:shell, which runs in a container',
  triggers: 'call the gateway when it is due',
  credentials: 'give tools their credentials with each request',
  voices: 'name a voice of the provider in speechConfig',
  webhooks: 'use callback_url of /api/v1/batches and /api/v1/videos',
  auth_tokens: 'the Live API is not served; use /api/v1/auth/keys/code for keys of applications',
};
const REGISTER = 'upload the file, or use its gs or https URI with a model at Google';

/** Methods of a model. */
export const UNSERVED_METHODS: Readonly<Record<string, string>> = {
  predict: 'use POST /api/v1/images or /api/v1/embeddings',
  predictLongRunning: 'use POST /api/v1/videos',
  batchGenerateContent: 'use POST /api/v1/batches',
  asyncBatchEmbedContent: 'use POST /api/v1/batches',
  computeTokens: 'use countTokens',
  bidiGenerateContent: 'use streamGenerateContent',
  generateAnswer: 'use generateContent',
};

const PATH = /^\/(?:upload\/)?(v1beta|v1)\/(\w+)(?::(\w+))?(?:\/|$)/;
const OF_MODEL = /^\/v1(?:beta)?\/models\/[^/]+(?:\/[^/]+)?\/operations\//;
const LIVE = /^\/ws\/google\.ai\./;

/**
 * Why a path of the Gemini API is not served. Undefined for other paths, and below `/v1`, where others have paths too, for
 * clients that are not Google's.
 */
export function unservedForGoogle(path: string, headers: Readonly<Record<string, unknown>>): string | undefined {
  // Requests of other clients end here.
  if (path.startsWith('/api/') || (path.startsWith('/v1/') && !isGoogle(headers))) return undefined;
  if (LIVE.test(path)) return 'the Live API of Gemini is not served: use streamGenerateContent';
  const [, version, word = '', verb] = PATH.exec(path) ?? [];
  if (version === undefined || (version === 'v1' && !isGoogle(headers))) return undefined;
  const name = OF_MODEL.test(path) ? 'operations' : word;
  if (name === 'files' && verb === 'register') return `files:register of the Gemini API is not served: ${REGISTER}`;
  const instead = Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : undefined;
  return instead && `${name} of the Gemini API is not served: ${instead}`;
}

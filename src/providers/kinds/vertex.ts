import type { FormatId } from '../../formats/conversation/conversation.ts';
import { vertexEmbedding } from '../../formats/embedding/index.ts';
import { geminiPath, vertexTokenCount as geminiTokenCount } from '../../formats/gemini/index.ts';
import { googleImages } from '../../formats/image/index.ts';
import { vertexTokenCount as claudeTokenCount } from '../../formats/messages/index.ts';
import { googleSigner } from '../auth/google-sign-in.ts';
import { BatchBucket, placeOf } from '../batches/bucket.ts';
import { cloudStorage } from '../batches/cloud-storage.ts';
import { vertexBatches } from '../batches/vertex.ts';
import { claudeOnVertexTools, geminiTools } from '../native-tools.ts';
import type { Delivery, ProviderKind } from '../provider.ts';

const CLAUDE = /^(anthropic\/)?claude-/;
/** `publisher/model`, except for the two publishers with their own format and for endpoints of tuned models. */
const OPEN = /^(?!google\/gemini|anthropic\/|endpoints\/)[a-z0-9-]+\/./;

function familyOf(model: string): 'claude' | 'open' | 'gemini' {
  if (CLAUDE.test(model)) return 'claude';
  return OPEN.test(model) ? 'open' : 'gemini';
}

const TUNED = /^endpoints\/[A-Za-z0-9-]+$/;

const FORMS: Record<ReturnType<typeof familyOf>, readonly FormatId[]> = {
  claude: ['messages'],
  open: ['chat'],
  gemini: ['gemini'],
};

const LOCATION = /^[a-z0-9-]{1,40}$/;

/**
 * Google's Vertex AI: Gemini by `generateContent`, Claude by `rawPredict` in Anthropic's format, and models of other
 * publishers (`meta/llama-...`) by chat completions. Calls carry an access token (`google-sign-in.ts`).
 */
export const vertex: ProviderKind = {
  id: 'vertex',
  name: 'Google Vertex',
  speaks: 'gemini',
  alsoSpeaks: ['messages', 'chat'],
  speaksFor: (model) => FORMS[familyOf(model)],
  baseUrl: ({ location = 'global' }) => `https://${hostOf(location)}/v1`,
  author: 'google',
  nativeTools: [...geminiTools, ...claudeOnVertexTools],
  service: { role: 'host', registryId: null, aliases: ['google-vertex'] },
  guide: {
    verifiedBy: 'recording',
    quirks:
      'Gemini, Claude and open models; access tokens from a key file or the machine, see [Vertex AI](../guides/google.md#vertex-ai)',
  },
  credentialDocument: true,
  byokDocument: 'google-account',
  splitByok: (value) => {
    const { project_id: project, region: location } = JSON.parse(value) as Record<string, string | undefined>;
    return { credential: value, options: { ...(project && { project }), ...(location && { location }) } };
  },
  options: {
    project: {
      environment: ['GOOGLE_CLOUD_PROJECT'],
      required: true,
      pattern: /^[a-z0-9][a-z0-9.:-]{1,99}$/,
      expectation: 'the id of a Google Cloud project',
      meaning: 'Google Cloud project.',
    },
    location: {
      environment: ['GOOGLE_CLOUD_LOCATION'],
      fallback: 'global',
      pattern: LOCATION,
      expectation: 'a location such as us-central1, or global',
      meaning: 'Google Cloud location.',
    },
    key_file: {
      environment: ['GOOGLE_APPLICATION_CREDENTIALS'],
      credential: true,
      pattern: /^[^\0]+$/,
      expectation: 'the path of a key file',
      meaning: 'Path of a service account key file. Together with the project it enables the provider.',
    },
    sign_in_url: {
      pattern: /^https?:\/\/[^\s/?#]+$/,
      expectation: 'an http or https URL without a path',
      meaning: 'Token server to use instead of Google.',
    },
    batch_bucket: {
      pattern: /^gs:\/\/[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](\/[\w=-][\w.=-]{0,99}){0,8}\/?$/,
      expectation: 'gs:// and the name of a bucket, with or without a folder',
      meaning: 'Bucket of Cloud Storage for batches, which it enables.',
    },
    batch_bucket_url: {
      pattern: /^https?:\/\/[^\s/?#]+$/,
      expectation: 'an http or https URL without a path',
      meaning: 'Private endpoint of Cloud Storage.',
    },
  },
  headers: () => ({}),
  forwards: ['anthropic-beta'],
  signer: googleSigner,
  path,
  origin: 'google-gemini-v1',
  originFor: (model) =>
    (({ claude: 'anthropic-claude-v1', open: 'unknown', gemini: 'google-gemini-v1' }) as const)[familyOf(model)],
  dialect: { gemini: { labels: true }, messages: { hosted: { version: 'vertex-2023-10-16' } } },
  countsTokens: (model) =>
    (
      ({
        claude: { format: 'messages', counting: claudeTokenCount },
        open: undefined,
        gemini: { format: 'gemini', counting: geminiTokenCount },
      }) as const
    )[familyOf(model)],
  embedding: vertexEmbedding,
  image: googleImages,
  batchesAt: ({ options }) => {
    const { batch_bucket: bucket, batch_bucket_url: url = 'https://storage.googleapis.com' } = options;
    if (bucket === undefined) return undefined;
    const place = placeOf(bucket);
    return vertexBatches(new BatchBucket(place, cloudStorage(place, url)));
  },
  batchProblem: ({ options, batches }) =>
    batches === true && options['batch_bucket'] === undefined ? 'needs batch_bucket (batches: true)' : undefined,
};

function hostOf(location: string): string {
  if (location === 'global') return 'aiplatform.googleapis.com';
  if (location === 'us' || location === 'eu') return `aiplatform.${location}.rep.googleapis.com`;
  return `${location}-aiplatform.googleapis.com`;
}

function path({ provider, model, stream, format, operation, path: usual }: Delivery): string | undefined {
  const { project, location } = provider.options;
  const parent = `/projects/${project}/locations/${location}`;
  if (operation === 'countTokens') return parent + usual;
  if (operation === 'batches') return usual;
  if (operation === 'models') return '/publishers/google/models';
  const name = encodeURIComponent(model.replace(/^(google|anthropic)\//, ''));
  switch (format) {
    case 'gemini':
      // A tuned model is called at the endpoint where it is deployed.
      if (TUNED.test(model)) return `${parent}/${model}${geminiPath('', stream).slice('/models/'.length)}`;
      return `${parent}/publishers/google${geminiPath(model.replace(/^google\//, ''), stream)}`;
    case 'messages':
      return `${parent}/publishers/anthropic/models/${name}:${stream ? 'streamRawPredict' : 'rawPredict'}`;
    case 'chat':
      return `${parent}/endpoints/openapi/chat/completions`;
    case 'image':
      return `${parent}/publishers/google${usual}`;
    case 'embedding':
      return parent + usual;
    default:
      return undefined;
  }
}

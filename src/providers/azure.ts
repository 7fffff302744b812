import { openaiEmbedding } from '../formats/embedding/index.ts';
import { deployedImages } from '../formats/image/index.ts';
import { bearer } from './bearer.ts';
import type { Delivery } from './deliver.ts';
import type { ProviderKind } from './provider.ts';
import { openaiResponses } from './responses.ts';

/** Of addresses that want a version, when none is configured: the newest one that is no preview. */
const DATED_VERSION = '2024-10-21';
/** The first that has gpt-image, edits and streams included. */
const IMAGE_VERSION = '2025-04-01-preview';
const FOUNDRY_VERSION = '2024-05-01-preview';

/**
 * OpenAI's models on Azure (learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle). The address is a resource,
 * asked at its v1 API or, with a dated `api_version`, at its deployments; a model's upstream name is its deployment's.
 * Addresses that name the v1 API, one deployment, or a Foundry resource's `/models` are taken as they are.
 */
export const azure: ProviderKind = {
  id: 'azure',
  name: 'Azure',
  speaks: 'chat',
  alsoSpeaks: ['responses'],
  baseUrl: ({ endpoint = 'https://resource.openai.azure.com' }) => endpoint.replace(/\/+$/, ''),
  environment: 'AZURE_OPENAI_API_KEY',
  author: 'azure',
  options: {
    endpoint: {
      environment: ['AZURE_OPENAI_ENDPOINT'],
      form: /^https?:\/\/[^\s?#@]+$/,
      said: 'the https URL of a resource',
      required: 'unless base_url',
      meaning: 'URL of the Azure resource.',
    },
    api_version: {
      environment: ['AZURE_OPENAI_API_VERSION', 'OPENAI_API_VERSION'],
      form: /^(\d{4}-\d{2}-\d{2}(-preview)?|v1|latest|preview)$/,
      said: 'a date such as 2024-10-21, v1 or preview',
      meaning: 'API version. A date selects the deployment API instead of the v1 API.',
    },
  },
  ownCredential: (value) => {
    if (!value.startsWith('{')) return { credential: value, options: {} };
    const { api_key, ...options } = JSON.parse(value) as Record<string, string>;
    return { credential: api_key!, options };
  },
  path,
  headers: (credential) => {
    if (credential === null) return {};
    // A token of Entra ID goes where tokens go, a resource's key has a header of its own.
    return TOKEN.test(credential) ? bearer(credential) : { 'api-key': credential };
  },
  origin: 'azure-openai-responses-v1',
  dialect: {
    chat: {
      maxTokens: 'max_completion_tokens',
      developerRole: true,
      strictCallIds: true,
      customTools: true,
      anyArguments: true,
    },
    responses: { ...openaiResponses, userField: 'user', origin: 'azure-openai-responses-v1' },
  },
  embedding: openaiEmbedding(),
  image: deployedImages,
};

const TOKEN = /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/;

function path({ provider, model, form, operation, path: usual }: Delivery): string {
  const { baseUrl, options } = provider;
  const version = options['api_version'];
  const dated = version !== undefined && /^\d/.test(version);
  // Pictures are a preview of the v1 API.
  const preview = version ?? (form === 'image' ? 'preview' : 'v1');
  const inV1 = preview === 'v1' ? '' : query(preview);
  if (/\/v1$/.test(baseUrl)) return usual + inV1;
  if (/\/models$/.test(baseUrl)) return usual + query(dated ? version : FOUNDRY_VERSION);
  if (/\/openai\/deployments\/[^/]+$/.test(baseUrl)) {
    return usual + query(dated ? version : form === 'image' ? IMAGE_VERSION : DATED_VERSION);
  }
  const root = /\/openai$/.test(baseUrl) ? '' : '/openai';
  if (!dated) return `${root}/v1${usual}${inV1}`;
  // The newer forms name their model in the body, and have no deployment in their path; nor has the list of all models.
  const elsewhere = form === 'responses' || operation === 'models';
  return `${root}${elsewhere ? '' : `/deployments/${encodeURIComponent(model)}`}${usual}${query(version)}`;
}

function query(version: string): string {
  return `?api-version=${version}`;
}

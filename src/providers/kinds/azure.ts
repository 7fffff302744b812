import { openaiEmbedding } from '../../formats/embedding/index.ts';
import { deployedImages } from '../../formats/image/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { BatchService } from '../batches/contract.ts';
import { openaiBatches } from '../batches/openai.ts';
import type { BatchServer, Delivery, Provider, ProviderKind } from '../provider.ts';
import { openaiResponses } from './responses.ts';

/** API version for URLs that require one, if none is configured: the newest that is not a preview. */
const DATED_VERSION = '2024-10-21';
/** The first version with gpt-image, including edits and streams. */
const IMAGE_VERSION = '2025-04-01-preview';
const FOUNDRY_VERSION = '2024-05-01-preview';

/**
 * OpenAI's models on Azure (learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle). The endpoint is a
 * resource, called through its v1 API or, with a dated `api_version`, its deployments; a model's upstream name is its
 * deployment's. Endpoints that already name the v1 API, one deployment, or a Foundry resource's `/models` are used
 * unchanged.
 */
export const azure: ProviderKind = {
  id: 'azure',
  name: 'Azure',
  speaks: 'chat',
  alsoSpeaks: ['responses'],
  baseUrl: ({ endpoint = 'https://resource.openai.azure.com' }) => endpoint.replace(/\/+$/, ''),
  environment: 'AZURE_OPENAI_API_KEY',
  author: 'azure',
  service: {
    role: 'host',
    registryId: null,
    policies: {
      privacyPolicyUrl: 'https://www.microsoft.com/en-us/privacy/privacystatement',
      termsOfServiceUrl: 'https://www.microsoft.com/en-us/legal/terms-of-use?oneroute=true',
      statusPageUrl: 'https://status.azure.com/',
      headquarters: 'US',
    },
  },
  guide: {
    verifiedBy: 'recording',
    quirks:
      '[v1 API or deployments](../guides/providers.md#azure), API key or Entra ID token, content filter results kept',
  },
  options: {
    endpoint: {
      environment: ['AZURE_OPENAI_ENDPOINT'],
      pattern: /^https?:\/\/[^\s?#@]+$/,
      expectation: 'the https URL of an Azure resource',
      required: 'unless base_url',
      meaning: 'URL of the Azure resource.',
    },
    api_version: {
      environment: ['AZURE_OPENAI_API_VERSION', 'OPENAI_API_VERSION'],
      pattern: /^(\d{4}-\d{2}-\d{2}(-preview)?|v1|latest|preview)$/,
      expectation: 'a date such as 2024-10-21, v1 or preview',
      meaning: 'API version. A date selects the deployment API instead of the v1 API.',
    },
  },
  byokDocument: 'azure-key',
  splitByok: (value) => {
    if (!value.startsWith('{')) return { credential: value, options: {} };
    const { api_key, ...options } = JSON.parse(value) as Record<string, string>;
    return { credential: api_key!, options };
  },
  path,
  headers: (credential) => {
    if (credential === null) return {};
    // Entra ID tokens are bearer tokens; a resource's key has its own header.
    return TOKEN.test(credential) ? bearer(credential) : { 'api-key': credential };
  },
  origin: 'azure-openai-responses-v1',
  dialect: {
    chat: {
      maxTokens: 'max_completion_tokens',
      developerRole: true,
      strictCallIds: true,
      customTools: true,
      allowedTools: true,
      anyArguments: true,
    },
    responses: { ...openaiResponses, userField: 'user', origin: 'azure-openai-responses-v1' },
  },
  embedding: openaiEmbedding(),
  image: deployedImages,
  batchesAt,
  batchProblem: ({ baseUrl = '', batches }) =>
    batches === true && ONE_PLACE.test(baseUrl)
      ? 'needs a base_url that names the resource, because its batches are not below this one (batches: true)'
      : undefined,
};

/** URLs of one deployment and of a Foundry resource's models; batches belong to the resource. */
const ONE_PLACE = /\/(models|deployments\/[^/]+)\/*$/;

/**
 * Global and Data Zone Batch (learn.microsoft.com/azure/ai-foundry/openai/how-to/batch). Only deployments of a batch type
 * can run them, which is why the configuration has to ask for it. The service takes the API from the calls, and
 * requires `endpoint` nevertheless.
 */
function batchesAt(server: BatchServer): BatchService | undefined {
  if (!server.batches) return undefined;
  const dated = hasDatedBatches(server);
  return openaiBatches({
    paths: dated ? ['/chat/completions'] : ['/chat/completions', '/responses'],
    limits: { items: 100_000, bytes: 200 * 1024 * 1024 },
    endpoint: '/chat/completions',
    ...(dated && { urlOf: (path) => path }),
    processesUploads: true,
    // A BYOK credential may name another resource or version.
    lacks: ({ provider }) =>
      ONE_PLACE.test(provider.baseUrl) || hasDatedBatches(provider) !== dated
        ? 'a base URL and an API version with batches'
        : undefined,
  });
}

const TOKEN = /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/;

function path({ provider, model, format, operation, path: usual }: Delivery): string {
  const { baseUrl, options } = provider;
  const version = options['api_version'];
  const dated = isDated(version);
  // Images are a preview feature of the v1 API.
  const preview = version ?? (format === 'image' ? 'preview' : 'v1');
  const inV1 = preview === 'v1' ? '' : query(preview);
  if (operation === 'batches') {
    if (hasDatedBatches(provider)) return joined(`${root(baseUrl)}${usual}`, query(version!));
    return joined(/\/v1$/.test(baseUrl) ? usual : `${root(baseUrl)}/v1${usual}`, inV1);
  }
  if (/\/v1$/.test(baseUrl)) return usual + inV1;
  if (/\/models$/.test(baseUrl)) return usual + query(dated ? version : FOUNDRY_VERSION);
  if (/\/openai\/deployments\/[^/]+$/.test(baseUrl)) {
    return usual + query(dated ? version : format === 'image' ? IMAGE_VERSION : DATED_VERSION);
  }
  if (!dated) return `${root(baseUrl)}/v1${usual}${inV1}`;
  // Responses name the model in the body and have no deployment in the path, nor does the model list.
  const elsewhere = format === 'responses' || operation === 'models';
  return `${root(baseUrl)}${elsewhere ? '' : `/deployments/${encodeURIComponent(model)}`}${usual}${query(version)}`;
}

/** Files and batches have no deployment in their paths. */
function hasDatedBatches({ baseUrl, options }: Pick<Provider, 'baseUrl' | 'options'>): boolean {
  return isDated(options['api_version']) && !/\/v1$/.test(baseUrl);
}

function isDated(version: string | undefined): version is string {
  return version !== undefined && /^\d/.test(version);
}

function root(baseUrl: string): string {
  return /\/openai$/.test(baseUrl) ? '' : '/openai';
}

/** @param more begins with `?`, or is empty */
function joined(path: string, more: string): string {
  return path.includes('?') ? path + more.replace('?', '&') : path + more;
}

function query(version: string): string {
  return `?api-version=${version}`;
}

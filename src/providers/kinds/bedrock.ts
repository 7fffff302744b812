import { converse as converseForm, vendorOf } from '../../formats/converse/index.ts';
import { bedrockImages } from '../../formats/image/index.ts';
import { bedrockTokenCount } from '../../formats/messages/index.ts';
import { bearer } from '../auth/bearer.ts';
import { isKeyDocument } from '../auth/bedrock-credentials.ts';
import { awsSigner, regionOf } from '../auth/bedrock-signer.ts';
import { bedrockBatches } from '../batches/bedrock.ts';
import { BatchBucket, placeOf } from '../batches/bucket.ts';
import type { BatchService } from '../batches/contract.ts';
import { s3Store } from '../batches/s3.ts';
import { converseFraming, invokeFraming } from '../framing/bedrock-event-stream.ts';
import type { BatchServer, Delivery, ProviderKind } from '../provider.ts';
import { converse } from './converse.ts';

/** Private endpoints have an address of their own for each service. */
const PRIVATE = /^https?:\/\/vpce-/;

const batchProblem: ProviderKind['batchProblem'] = ({ baseUrl = '', options, batches }) => {
  const { batch_bucket: bucket, batch_role: role, batch_url: url } = options;
  if ((bucket === undefined) !== (role === undefined))
    return `needs ${bucket === undefined ? 'batch_bucket' : 'batch_role'} too, for batches`;
  if (bucket === undefined) return batches === true ? 'needs batch_bucket and batch_role (batches: true)' : undefined;
  return PRIVATE.test(baseUrl) && url === undefined
    ? 'needs batch_url, because its base_url is a private endpoint of the runtime alone'
    : undefined;
};

/**
 * Amazon Bedrock (docs.aws.amazon.com/bedrock/latest/APIReference): every model in the converse format, and Claude also
 * in its own for clients that use it. Calls carry a Bedrock API key or are signed with AWS keys, either from the
 * configuration as a JSON document or from the AWS credential chain.
 */
export const bedrock: ProviderKind = {
  ...converse,
  id: 'bedrock',
  name: 'Amazon Bedrock',
  speaksFor: (model) => (vendorOf(model) === 'anthropic' ? ['converse', 'messages'] : ['converse']),
  baseUrl: ({ region = 'us-east-1' }) => `https://bedrock-runtime.${region}.${domainOf(region)}`,
  // Only this variable enables the provider: AWS credentials on the machine do not mean that it may spend money.
  alsoEnvironment: ['AWS_BEARER_TOKEN_BEDROCK'],
  author: 'bedrock',
  service: {
    role: 'host',
    registryId: null,
    aliases: ['amazon-bedrock'],
    policies: {
      privacyPolicyUrl: 'https://aws.amazon.com/privacy',
      termsOfServiceUrl: 'https://aws.amazon.com/service-terms/',
      statusPageUrl: 'https://health.aws.amazon.com/health/status',
      headquarters: 'US',
    },
  },
  guide: {
    verifiedBy: 'recording',
    quirks: 'API keys or AWS credentials, binary streams, see [Bedrock](../guides/bedrock.md)',
  },
  options: {
    region: {
      environment: ['AWS_REGION', 'AWS_DEFAULT_REGION'],
      pattern: /^[a-z]{2}(-[a-z]+)+-\d$/,
      expectation: 'an AWS region such as eu-central-1',
      required: 'unless base_url',
      meaning: 'AWS region.',
    },
    profile: {
      environment: ['AWS_PROFILE'],
      pattern: /^[\x21-\x7e]{1,128}$/,
      expectation: 'the name of an AWS profile',
      meaning: 'Profile in the AWS configuration files.',
    },
    batch_bucket: {
      pattern: /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[\w=-][\w.=-]{0,99}){0,8}\/?$/,
      expectation: 's3:// and the name of a bucket, with or without a folder',
      meaning: 'Bucket for batches, in the region and account of the provider. Together with the role it enables them.',
    },
    batch_role: {
      pattern: /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/,
      expectation: 'the ARN of a role',
      meaning: 'Service role by which Bedrock uses the bucket of batches.',
    },
    batch_minimum: {
      fallback: '100',
      pattern: /^[1-9]\d{0,4}$/,
      expectation: 'a number from 1 to 99999',
      meaning: 'Fewest requests of a batch that Bedrock takes, a quota of the account.',
    },
    batch_url: {
      pattern: /^https?:\/\/[^\s/?#]+$/,
      expectation: 'an http or https URL without a path',
      meaning: 'Private endpoint of the Bedrock control plane, which runs batches.',
    },
    batch_bucket_url: {
      pattern: /^https?:\/\/[^\s/?#]+$/,
      expectation: 'an http or https URL without a path',
      meaning: 'Private endpoint of S3.',
    },
  },
  byokDocument: 'aws-keys',
  splitByok: (value) => {
    if (!isKeyDocument(value)) return { credential: value, options: {} };
    const { region, apiKey } = JSON.parse(value) as Record<string, string | undefined>;
    return { credential: apiKey ?? value, options: { ...(region && { region }) } };
  },
  headers: (credential) => ({
    'content-type': 'application/json',
    ...(credential !== null && !isKeyDocument(credential) && bearer(credential)),
  }),
  path,
  signer: awsSigner,
  framing: (format) => (format === 'converse' ? converseFraming : format === 'messages' ? invokeFraming : undefined),
  decodeFailure: converseForm.decodeFailure,
  dialect: {
    messages: {
      hosted: { version: 'bedrock-2023-05-31', streamInPath: true, betasInBody: true },
      refuses: ['service_tier', 'inference_geo'],
    },
  },
  countsTokens: (model) =>
    vendorOf(model) === 'anthropic' && !model.startsWith('arn:')
      ? { format: 'messages', counting: bedrockTokenCount }
      : undefined,
  image: bedrockImages,
  batchesAt,
  batchProblem,
};

function batchesAt({ baseUrl, options }: BatchServer): BatchService | undefined {
  const { batch_bucket: bucket, batch_role: role, batch_minimum: least, batch_url: url } = options;
  if (bucket === undefined || role === undefined) return undefined;
  const place = placeOf(bucket);
  const region = regionOf({ options, baseUrl });
  const storage = options['batch_bucket_url'] ?? `https://s3.${region}.${domainOf(region)}`;
  return bedrockBatches({
    bucket: new BatchBucket(place, s3Store(place, storage)),
    role,
    address: url ?? baseUrl.replace(RUNTIME, '$1bedrock$2.'),
    least: Number(least),
  });
}

/** The runtime at its public address. The control plane has the same without `-runtime`. */
const RUNTIME = /^(https?:\/\/)bedrock-runtime(-fips)?\./;
function domainOf(region: string): string {
  return `amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}

function path({ format, model, stream, operation, path: usual }: Delivery): string {
  if (format !== 'messages' || operation !== undefined) return usual;
  return `/model/${encodeURIComponent(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`;
}

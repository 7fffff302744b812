import { converse as converseForm, vendorOf } from '../../formats/converse/index.ts';
import { bedrockImages } from '../../formats/image/index.ts';
import { bedrockTokenCount } from '../../formats/messages/index.ts';
import { bearer } from '../auth/bearer.ts';
import { isKeyDocument } from '../auth/bedrock-credentials.ts';
import { awsSigner } from '../auth/bedrock-signer.ts';
import { converseFraming, invokeFraming } from '../framing/bedrock-event-stream.ts';
import type { Delivery, ProviderKind } from '../provider.ts';
import { converse } from './converse.ts';

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
  baseUrl: ({ region = 'us-east-1' }) =>
    `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
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
};

function path({ format, model, stream, operation, path: usual }: Delivery): string {
  if (format !== 'messages' || operation !== undefined) return usual;
  return `/model/${encodeURIComponent(model)}/${stream ? 'invoke-with-response-stream' : 'invoke'}`;
}

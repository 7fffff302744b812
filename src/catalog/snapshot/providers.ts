/** Public facts about services, by provider kind, as stated by their source. Anything else stays unknown. */

export interface ServiceFacts {
  privacyPolicyUrl: string;
  termsOfServiceUrl: string;
  statusPageUrl: string;
  /** ISO 3166-1 alpha-2. */
  headquarters: string;
  source: string;
  /** `YYYY-MM-DD` */
  date: string;
}

const READ = { source: "OpenRouter's GET /providers, as kept in a public repository (naas-abi)", date: '2026-11-28' };

export const SERVICES: Readonly<Record<string, ServiceFacts>> = Object.freeze({
  anthropic: {
    privacyPolicyUrl: 'https://www.anthropic.com/legal/privacy',
    termsOfServiceUrl: 'https://www.anthropic.com/legal/commercial-terms',
    statusPageUrl: 'https://status.anthropic.com/',
    headquarters: 'US',
    ...READ,
  },
  azure: {
    privacyPolicyUrl: 'https://www.microsoft.com/en-us/privacy/privacystatement',
    termsOfServiceUrl: 'https://www.microsoft.com/en-us/legal/terms-of-use?oneroute=true',
    statusPageUrl: 'https://status.azure.com/',
    headquarters: 'US',
    ...READ,
  },
  bedrock: {
    privacyPolicyUrl: 'https://aws.amazon.com/privacy',
    termsOfServiceUrl: 'https://aws.amazon.com/service-terms/',
    statusPageUrl: 'https://health.aws.amazon.com/health/status',
    headquarters: 'US',
    ...READ,
  },
  mistral: {
    privacyPolicyUrl: 'https://mistral.ai/terms/#privacy-policy',
    termsOfServiceUrl: 'https://mistral.ai/terms/#terms-of-use',
    statusPageUrl: 'https://status.mistral.ai/',
    headquarters: 'FR',
    ...READ,
  },
  openai: {
    privacyPolicyUrl: 'https://openai.com/policies/privacy-policy/',
    termsOfServiceUrl: 'https://openai.com/policies/row-terms-of-use/',
    statusPageUrl: 'https://status.openai.com/',
    headquarters: 'US',
    ...READ,
  },
});

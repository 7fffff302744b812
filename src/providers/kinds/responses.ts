import type { Dialect } from '../../formats/conversation/format.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/** Any service that speaks the responses format, without quirks. It is asked not to store anything. */
export const responses: ProviderKind = {
  id: 'responses',
  name: 'Responses API',
  speaks: 'responses',
  guide: {
    verifiedBy: 'recording',
    quirks: 'the plain format, for any other service; most need `function_tools_only: true`',
  },
  headers: bearer,
  origin: 'openai-responses-v1',
  dialect: { responses: { tools: 'all' } },
};

/**
 * Dialect of OpenAI and of services with the same implementation: unstored reasoning cannot be looked up, so only
 * encrypted reasoning is accepted back, and foreign parameters are rejected.
 */
export const openaiResponses: NonNullable<Dialect['responses']> = {
  minOutputTokens: 16,
  tools: 'all',
  userField: 'safety_identifier',
  encryptedReasoningOnly: true,
  strictCallIds: true,
  refuses: ['cache_control', 'frequency_penalty', 'image_config', 'modalities', 'presence_penalty', 'top_k'],
};

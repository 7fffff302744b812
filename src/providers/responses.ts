import type { Dialect } from '../formats/conversation/format.ts';
import { bearer } from './bearer.ts';
import type { ProviderKind } from './provider.ts';

/** Any service that speaks the responses form, without quirks. Nothing is asked to be stored there. */
export const responses: ProviderKind = {
  id: 'responses',
  name: 'Responses API',
  speaks: 'responses',
  headers: bearer,
  origin: 'openai-responses-v1',
  dialect: { responses: { tools: 'all' } },
};

/**
 * What OpenAI and those who serve its form as it does have in common: what is not stored there cannot be looked up, so
 * reasoning is taken back encrypted only, and parameters that are not theirs are refused.
 */
export const openaiResponses: NonNullable<Dialect['responses']> = {
  minOutputTokens: 16,
  tools: 'all',
  userField: 'safety_identifier',
  encryptedReasoningOnly: true,
  strictCallIds: true,
  refuses: ['cache_control', 'frequency_penalty', 'image_config', 'modalities', 'presence_penalty', 'top_k'],
};

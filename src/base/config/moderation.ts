/** The section `moderation` of the yaml (docs/guides/plugins.md#moderation). */
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { mapping, oneOf, text, textLike } from './readers.ts';

export interface ModerationSettings {
  /** Of the API, without a trailing slash; `/moderations` follows. */
  url: string;
  /** null for a service that needs none. */
  apiKey: Secret | null;
  /** The service's name of its model; null: its default. */
  model: string | null;
  /** What becomes of a request that could not be checked. */
  onFailure: 'refuse' | 'allow';
}

export const OPENAI_MODERATION_URL = 'https://api.openai.com/v1';

const credential = textLike(CREDENTIAL, 'a text without spaces or control characters, as a header carries it');

export function moderation(field: Field): ModerationSettings | undefined {
  const read = mapping(field, {
    url: baseUrl,
    api_key: credential,
    model: text,
    on_failure: oneOf(['refuse', 'allow'] as const),
  });
  if (!read) return undefined;
  return {
    url: read.url ?? OPENAI_MODERATION_URL,
    apiKey: read.api_key === undefined ? null : new Secret(read.api_key),
    model: read.model ?? null,
    onFailure: read.on_failure ?? 'refuse',
  };
}

/** The section `ocr` of the yaml (docs/guides/plugins.md#file-parser). */
import type { Nano } from '../money.ts';
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { mapping, text, textLike, usd } from './readers.ts';

export interface OcrSettings {
  /** Of the API, without a trailing slash; `/ocr` follows. */
  url: string;
  /** null for a service that needs none. */
  apiKey: Secret | null;
  model: string;
  /** What a page costs the gateway's customers. */
  pageNano: Nano;
}

export const MISTRAL_URL = 'https://api.mistral.ai/v1';
export const OCR_MODEL = 'mistral-ocr-latest';

const credential = textLike(CREDENTIAL, 'a text without spaces or control characters, as a header carries it');

export function ocr(field: Field): OcrSettings | undefined {
  const read = mapping(field, { url: baseUrl, api_key: credential, model: text, price_per_page: usd });
  if (!read) return undefined;
  return {
    url: read.url ?? MISTRAL_URL,
    apiKey: read.api_key === undefined ? null : new Secret(read.api_key),
    model: read.model ?? OCR_MODEL,
    pageNano: read.price_per_page ?? 0n,
  };
}

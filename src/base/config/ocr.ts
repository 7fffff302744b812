/** The section `ocr` of the yaml (docs/guides/plugins.md#file-parser). */
import type { Nano } from '../money.ts';
import { Secret } from '../secret.ts';
import type { Field } from './field.ts';
import { baseUrl, CREDENTIAL } from './provider-readers.ts';
import { mapping, text, textLike, usd } from './readers.ts';
import type { Config } from './settings.ts';

export interface OcrSettings {
  /** Of the API, without a trailing slash; `/ocr` follows. */
  url: string;
  /** null for a service that needs none. */
  apiKey: Secret | null;
  model: string;
  /** What a page costs the gateway's customers. */
  pageNano: Nano;
  /** Id of the provider whose credential is used; null for a service of its own. */
  providerId: string | null;
}

/** Mistral's price of a page (mistral.ai/pricing), where the operator gives none. */
const MISTRAL_PAGE_NANO = 2_000_000n;

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
    providerId: null,
  };
}

/** The section, or the first provider of the kind `mistral`; null if there is neither. */
export function ocrOf({ ocr: section, providers }: Pick<Config, 'ocr' | 'providers'>): OcrSettings | null {
  if (section !== null) return section;
  const provider = providers.find(({ kind, credentials }) => kind === 'mistral' && credentials.length > 0);
  if (provider === undefined) return null;
  const { id, baseUrl, credentials } = provider;
  return {
    ...{ url: baseUrl ?? MISTRAL_URL, apiKey: credentials[0]!, model: OCR_MODEL },
    ...{ pageNano: MISTRAL_PAGE_NANO, providerId: id },
  };
}

/** Token counts of a prompt and of parts of it: with the model's own tokenizer, or estimated with a related one. */
import type { Endpoint } from '../../../catalog/index.ts';
import { type Fields, isFields } from '../../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../../formats/conversation/format.ts';
import { estimateTokens } from '../../accounting/meter.ts';
import type { TokenCounter } from '../../tokens/counter.ts';
import { type Encoding, encodingOf } from '../../tokens/family.ts';
import { requestText } from '../../tokens/request-text.ts';

/** Other vendors' tokenizers need up to about a quarter more tokens for the same text. */
const FOREIGN_MARGIN = 1.25;
/** An image or a page of usual size. */
const MEDIUM_TOKENS = 1_600;
/** Texts of this length and more that look like base64 are bytes of media. */
const MEDIA_LENGTH = 1_024;
const BASE64 = /^(?:data:[^,]{0,200},)?[A-Za-z0-9+/_=-]*$/;

export class PromptSizes {
  readonly #format: ServedFormat;
  readonly #encoding: Encoding;
  readonly #margin: number;
  readonly #tokens: TokenCounter | undefined;
  /** The counts so far are those of the model's own tokenizer. */
  exact: boolean;

  constructor(format: ServedFormat, { upstreamId }: Endpoint, tokens: TokenCounter | undefined) {
    const own = encodingOf(upstreamId);
    this.#format = format;
    this.#encoding = own ?? 'o200k_base';
    this.#margin = own === undefined ? FOREIGN_MARGIN : 1;
    this.#tokens = tokens;
    this.exact = own !== undefined;
  }

  /** @param body a request body, or a part of one */
  async of(body: Fields): Promise<number> {
    const { images, documents } = this.#format.facts(body).media;
    if (images + documents > 0) this.exact = false;
    const text = requestText(withoutMedia(body) as Fields);
    const counted = await this.#tokens?.count(this.#encoding, text);
    if (counted === undefined) this.exact = false;
    const tokens = counted === undefined ? estimateTokens(Buffer.byteLength(text)) : counted * this.#margin;
    return Math.ceil(tokens) + (images + documents) * MEDIUM_TOKENS;
  }
}

function withoutMedia(value: unknown): unknown {
  if (typeof value === 'string') return value.length >= MEDIA_LENGTH && BASE64.test(value) ? '' : value;
  if (Array.isArray(value)) return value.map(withoutMedia);
  if (!isFields(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutMedia(member)]));
}

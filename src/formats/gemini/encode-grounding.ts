/**
 * Citations of an answer and searches of its upstream, as `groundingMetadata`. Ranges of the format count the UTF-8 bytes
 * of the text.
 */
import type { Citation } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { ServedCall } from '../conversation/served-call.ts';

/** Of one candidate. */
export class Grounding {
  readonly #queries: string[] = [];
  readonly #chunks: Fields[] = [];
  readonly #supports: Fields[] = [];
  /** Positions of chunks, by address. */
  readonly #places = new Map<string, number>();

  search({ tool, input, result }: ServedCall): void {
    if (tool !== 'web_search' || result === undefined) return;
    if (input !== '') this.#queries.push(input);
    for (const { url, title } of result.pages ?? []) this.#chunkOf(url, title);
  }

  /** @param text of the answer so far, to which the range refers */
  cite({ url, title, start, end, native }: Citation, text: string): void {
    if (url === undefined) return;
    const own = native?.origin === 'gemini' ? (native.value as Fields) : undefined;
    const index = this.#chunkOf(url, title ?? undefined, own);
    const from = start ?? 0;
    if (end === undefined || end > text.length || end <= from) return;
    this.#supports.push({
      segment: {
        startIndex: Buffer.byteLength(text.slice(0, from)),
        endIndex: Buffer.byteLength(text.slice(0, end)),
        text: text.slice(from, end),
      },
      groundingChunkIndices: [index],
    });
  }

  #chunkOf(uri: string, title: string | undefined, own?: Fields): number {
    let place = this.#places.get(uri);
    if (place === undefined) {
      place = this.#chunks.length;
      this.#places.set(uri, place);
      // A recited source has the address next to its range.
      const isChunk = own !== undefined && !('uri' in own);
      this.#chunks.push(isChunk ? own : { web: { uri, ...(title !== undefined && { title }) } });
    }
    return place;
  }

  /** The member of the candidate; none without sources. */
  get members(): Fields {
    if (this.#chunks.length === 0 && this.#queries.length === 0) return {};
    return {
      groundingMetadata: {
        ...(this.#queries.length > 0 && { webSearchQueries: this.#queries }),
        ...(this.#chunks.length > 0 && { groundingChunks: this.#chunks }),
        ...(this.#supports.length > 0 && { groundingSupports: this.#supports }),
      },
    };
  }
}

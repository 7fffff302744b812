/** Citations of a candidate: grounding in web search, maps or documents, and recited sources. */
import type { Citation } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import type { ServedCall } from '../conversation/served-call.ts';

/** Upper bound, because a stream could repeat sources endlessly. */
const MOST_CITATIONS = 1_000;

export class Citations {
  readonly #told = new Set<string>();
  /** The service's queries to web search. */
  queries: readonly string[] = [];
  readonly #pages = new Map<string, string>();

  /** The search with what it found; undefined if there was none. Once the answer is complete. */
  get search(): ServedCall | undefined {
    if (this.queries.length === 0) return undefined;
    const pages = [...this.#pages].map(([url, title]) => ({ url, title }));
    return { id: 'search', tool: 'web_search', input: this.queries.join('; '), result: { failed: false, pages } };
  }

  /** Sources not seen before. `text` is all text so far; the service's ranges count its UTF-8 bytes. */
  read(candidate: Fields, text: string): Citation[] {
    const { groundingMetadata, citationMetadata } = candidate;
    if (groundingMetadata === undefined && citationMetadata === undefined) return [];
    const bytes = Buffer.from(text, 'utf8');
    const found = [
      ...this.#grounding(fieldsOf(groundingMetadata), bytes),
      ...recited(fieldsOf(citationMetadata), bytes),
    ];
    return found.filter((citation) => {
      if (this.#told.size >= MOST_CITATIONS) return false;
      const key = JSON.stringify([citation.url, citation.title, citation.start, citation.end]);
      if (this.#told.has(key)) return false;
      this.#told.add(key);
      return true;
    });
  }

  #grounding(grounding: Fields, bytes: Buffer): Citation[] {
    const queries = listOf(grounding['webSearchQueries']).map(textOf);
    if (queries.length > this.queries.length) this.queries = queries;
    const chunks = listOf(grounding['groundingChunks']).map(fieldsOf);
    for (const { web } of chunks) {
      const { uri, title } = fieldsOf(web);
      if (typeof uri === 'string' && this.#pages.size < MOST_CITATIONS) this.#pages.set(uri, textOf(title));
    }
    const citations: Citation[] = [];
    const cited = new Set<number>();
    for (const entry of listOf(grounding['groundingSupports'])) {
      const { segment, groundingChunkIndices } = fieldsOf(entry);
      for (const index of listOf(groundingChunkIndices)) {
        const chunk = typeof index === 'number' ? chunks[index] : undefined;
        if (chunk === undefined || citations.length >= MOST_CITATIONS) continue;
        cited.add(index as number);
        citations.push({ ...chunkCitation(chunk), ...rangeOf(fieldsOf(segment), bytes) });
      }
    }
    chunks.forEach((chunk, index) => {
      if (!cited.has(index)) citations.push(chunkCitation(chunk));
    });
    return citations;
  }
}

function recited(metadata: Fields, bytes: Buffer): Citation[] {
  return [...listOf(metadata['citationSources']), ...listOf(metadata['citations'])].map((entry) => {
    const source = fieldsOf(entry);
    return {
      ...(typeof source['uri'] === 'string' && { url: source['uri'] }),
      ...(typeof source['title'] === 'string' && { title: source['title'] }),
      ...rangeOf(source, bytes),
      native: { origin: 'gemini', value: source },
    };
  });
}

function chunkCitation(chunk: Fields): Citation {
  const source = fieldsOf(chunk['web'] ?? chunk['maps'] ?? chunk['retrievedContext'] ?? chunk['image']);
  const citation: Citation = { native: { origin: 'gemini', value: chunk } };
  const url = source['uri'] ?? source['sourceUri'];
  if (typeof url === 'string') citation.url = url;
  if (typeof source['title'] === 'string') citation.title = source['title'];
  return citation;
}

/** Converts a range of UTF-8 bytes to one of characters; empty if it lies outside the text. */
function rangeOf(segment: Fields, bytes: Buffer): { start?: number; end?: number } {
  const end = countOf(segment['endIndex']);
  const start = countOf(segment['startIndex']);
  if (end === 0 || end > bytes.length || start > end) return {};
  return {
    start: bytes.toString('utf8', 0, start).length,
    end: bytes.toString('utf8', 0, end).length,
  };
}

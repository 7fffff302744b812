/** Search by words: ranks texts by BM25. Linear in the texts for each word of the query, so for thousands of entries, not millions. */

/** The usual parameters: term frequency saturation and length normalization. */
const K1 = 1.2;
const B = 0.75;
const MAX_QUERY_LENGTH = 1_000;

interface Indexed {
  counts: Map<string, number>;
  length: number;
}

export class WordIndex<Entry> {
  readonly #entries: readonly Entry[];
  readonly #textOf: (entry: Entry) => string;
  #texts: Indexed[] | undefined;

  /** Texts are read at the first search. */
  constructor(entries: readonly Entry[], textOf: (entry: Entry) => string) {
    this.#entries = entries;
    this.#textOf = textOf;
  }

  /** Entries that share a word with the query, best match first, ties in the order of the entries. */
  search(query: string, maxResults: number): Entry[] {
    this.#texts ??= this.#entries.map((entry) => indexed(this.#textOf(entry)));
    const texts = this.#texts;
    const average = texts.reduce((sum, { length }) => sum + length, 0) / texts.length || 1;
    const scores = texts.map(() => 0);
    for (const word of new Set(wordsOf(query.slice(0, MAX_QUERY_LENGTH)))) {
      const holders = texts.filter(({ counts }) => counts.has(word)).length;
      if (holders === 0) continue;
      const rarity = Math.log(1 + (texts.length - holders + 0.5) / (holders + 0.5));
      texts.forEach(({ counts, length }, index) => {
        const count = counts.get(word);
        if (count === undefined) return;
        scores[index]! += (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / average));
      });
    }
    return scores
      .map((score, index) => ({ score, index }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score || one.index - other.index)
      .slice(0, maxResults)
      .map(({ index }) => this.#entries[index]!);
  }
}

function indexed(text: string): Indexed {
  const counts = new Map<string, number>();
  const words = wordsOf(text);
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { counts, length: words.length };
}

/** `getOpenIssues` and `get_open_issues` are three words each. */
function wordsOf(text: string): string[] {
  const apart = text.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').toLowerCase();
  return apart.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Searches deferred tools by words (BM25) or by a regular expression. */

import type { FunctionTool } from '../../conversation/conversation.ts';
import type { CompileRegex } from '../../conversation/deferred-search.ts';
import { type Fields, fieldsOf } from '../../conversation/fields.ts';

/** The usual BM25 parameters: term frequency saturation and length normalization. */
const K1 = 1.2;
const B = 0.75;
const MAX_QUERY_LENGTH = 1_000;
/** Schema members whose names are indexed. */
const MAX_PROPERTIES = 200;

interface Indexed {
  counts: Map<string, number>;
  length: number;
}

/** Finds tools by words of their names, descriptions and parameters. Best match first, ties in declaration order. */
export class WordIndex {
  readonly #tools: readonly FunctionTool[];
  #texts: Indexed[] | undefined;

  constructor(tools: readonly FunctionTool[]) {
    this.#tools = tools;
  }

  search(query: string, maxResults: number): string[] {
    this.#texts ??= this.#tools.map(indexed);
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
      .map(({ index }) => this.#tools[index]!.name);
  }
}

/** Returns undefined for an invalid expression. */
export function searchByRegex(
  tools: readonly FunctionTool[],
  pattern: string,
  maxResults: number,
  compile: CompileRegex,
): string[] | undefined {
  const matches = pattern.length > MAX_QUERY_LENGTH ? undefined : compile(pattern);
  if (matches === undefined) return undefined;
  const found: string[] = [];
  for (const tool of tools) {
    if (found.length >= maxResults) break;
    if (matches(tool.name) || matches(textOf(tool))) found.push(tool.name);
  }
  return found;
}

function indexed(tool: FunctionTool): Indexed {
  const counts = new Map<string, number>();
  const words = wordsOf(textOf(tool));
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { counts, length: words.length };
}

function textOf({ name, description = '', parameters }: FunctionTool): string {
  const properties = Object.entries(fieldsOf(fieldsOf(parameters)['properties'])).slice(0, MAX_PROPERTIES);
  const about = properties.map(([key, value]) => {
    const { description } = fieldsOf(value) as Fields;
    return typeof description === 'string' ? `${key} ${description}` : key;
  });
  return [name, description, ...about].join('\n');
}

/** `getOpenIssues` and `get_open_issues` are three words each. */
function wordsOf(text: string): string[] {
  const apart = text.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').toLowerCase();
  return apart.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Searches deferred tools by words or by a regular expression. */

import { WordIndex } from '../../../base/word-index.ts';
import type { FunctionTool } from '../../conversation/conversation.ts';
import type { CompileRegex } from '../../conversation/deferred-search.ts';
import { type Fields, fieldsOf } from '../../conversation/fields.ts';

const MAX_PATTERN_LENGTH = 1_000;
/** Schema members whose names are indexed. */
const MAX_PROPERTIES = 200;

/** Finds tools by words of their names, descriptions and parameters. */
export function wordIndexOf(tools: readonly FunctionTool[]): WordIndex<FunctionTool> {
  return new WordIndex(tools, textOf);
}

/** Returns undefined for an invalid expression. */
export function searchByRegex(
  tools: readonly FunctionTool[],
  pattern: string,
  maxResults: number,
  compile: CompileRegex,
): string[] | undefined {
  const matches = pattern.length > MAX_PATTERN_LENGTH ? undefined : compile(pattern);
  if (matches === undefined) return undefined;
  const found: string[] = [];
  for (const tool of tools) {
    if (found.length >= maxResults) break;
    if (matches(tool.name) || matches(textOf(tool))) found.push(tool.name);
  }
  return found;
}

function textOf({ name, description = '', parameters }: FunctionTool): string {
  const properties = Object.entries(fieldsOf(fieldsOf(parameters)['properties'])).slice(0, MAX_PROPERTIES);
  const about = properties.map(([key, value]) => {
    const { description } = fieldsOf(value) as Fields;
    return typeof description === 'string' ? `${key} ${description}` : key;
  });
  return [name, description, ...about].join('\n');
}

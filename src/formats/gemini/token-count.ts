/** `countTokens` of the Gemini API: a whole request is counted, with its instructions and tools. */
import { fieldsOf } from '../conversation/fields.ts';
import type { TokenCount } from '../conversation/format.ts';
import { nameOf } from './path.ts';

/** What a request is long by. */
const COUNTED = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'cachedContent'];

export const tokenCount: TokenCount = {
  path: (model) => `/models/${encodeURIComponent(nameOf(model))}:countTokens`,
  body(request, model) {
    const given = fieldsOf(request);
    const counted = COUNTED.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]]));
    return { generateContentRequest: { model: `models/${nameOf(model)}`, ...Object.fromEntries(counted) } };
  },
  read: (reply) => fieldsOf(reply)['totalTokens'],
};

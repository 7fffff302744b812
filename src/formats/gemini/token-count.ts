/** `countTokens` of the Gemini API: a whole request is counted, with its instructions and tools. */
import { fieldsOf } from '../conversation/fields.ts';
import type { TokenCount } from '../conversation/format.ts';
import { nameOf } from './path.ts';

/** What a request is long by. */
const COUNTED = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'cachedContent'];

/** On Vertex (`countTokens`), below a project: the members stand on their own. A tuned model is counted where it is asked. */
export const vertexTokenCount: TokenCount = {
  path: (model) =>
    /^endpoints\//.test(model)
      ? `/${model}:countTokens`
      : `/publishers/google/models/${encodeURIComponent(nameOf(model.replace(/^google\//, '')))}:countTokens`,
  body(request) {
    const { contents, systemInstruction, tools } = fieldsOf(request);
    return {
      contents,
      ...(systemInstruction !== undefined && { systemInstruction }),
      ...(tools !== undefined && { tools }),
    };
  },
  read: (reply) => fieldsOf(reply)['totalTokens'],
};

export const tokenCount: TokenCount = {
  path: (model) => `/models/${encodeURIComponent(nameOf(model))}:countTokens`,
  body(request, model) {
    const given = fieldsOf(request);
    const counted = COUNTED.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]]));
    return { generateContentRequest: { model: `models/${nameOf(model)}`, ...Object.fromEntries(counted) } };
  },
  read: (reply) => fieldsOf(reply)['totalTokens'],
};

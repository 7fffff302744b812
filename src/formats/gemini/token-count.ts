/** `countTokens` of the Gemini API: counts a complete request, including instructions and tools. */
import { fieldsOf } from '../conversation/fields.ts';
import type { TokenCount } from '../conversation/format.ts';
import { member } from './names.ts';
import { nameOf } from './path.ts';
import { relayedContents } from './relay-contents.ts';

/** Members that contribute to the length, besides the contents. */
const COUNTED = ['systemInstruction', 'tools', 'toolConfig'];

/**
 * `countTokens` on Vertex, relative to a project: the members are at the top level. A tuned model is counted at its
 * endpoint.
 */
export const vertexTokenCount: TokenCount = {
  path: (model) =>
    /^endpoints\//.test(model)
      ? `/${model}:countTokens`
      : `/publishers/google/models/${encodeURIComponent(nameOf(model.replace(/^google\//, '')))}:countTokens`,
  body(request, model) {
    const given = fieldsOf(request);
    const [systemInstruction, tools] = [member(given, 'systemInstruction'), member(given, 'tools')];
    return {
      contents: relayedContents(given['contents'], model),
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
    const counted = COUNTED.flatMap((key) => {
      const value = member(given, key);
      return value === undefined ? [] : [[key, value]];
    });
    const contents = relayedContents(given['contents'], model);
    return { generateContentRequest: { model: `models/${nameOf(model)}`, contents, ...Object.fromEntries(counted) } };
  },
  read: (reply) => fieldsOf(reply)['totalTokens'],
};

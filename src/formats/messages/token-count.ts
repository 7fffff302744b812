/** `POST /messages/count_tokens` counts a request's input and rejects members that only apply to generation. */
import { stringifyJson } from '../../base/json.ts';
import { fieldsOf } from '../conversation/fields.ts';
import type { TokenCount } from '../conversation/format.ts';

const COUNTED = ['messages', 'system', 'tools', 'tool_choice', 'thinking', 'mcp_servers', 'context_management'];

/**
 * Vertex (docs.cloud.google.com/vertex-ai, "Count tokens for Claude models"): the path is below a project, the model in
 * the body.
 */
export const vertexTokenCount: TokenCount = {
  path: () => '/publishers/anthropic/models/count-tokens:rawPredict',
  body: (request, model) => ({
    anthropic_version: 'vertex-2023-10-16',
    ...(tokenCount.body(request, model.replace(/^anthropic\//, '')) as object),
  }),
  read: (reply) => fieldsOf(reply)['input_tokens'],
};

/**
 * Bedrock (`CountTokens`): a complete `InvokeModel` body in base64, including the required output cap. Accepts only the
 * model id itself, not a cross-region inference profile.
 */
export const bedrockTokenCount: TokenCount = {
  path: (model) => `/model/${encodeURIComponent(model.replace(/^[a-z-]+\.(?=anthropic\.)/, ''))}/count-tokens`,
  body(request, model) {
    const { model: _, ...counted } = fieldsOf(tokenCount.body(request, model));
    const budget = fieldsOf(counted['thinking'])['budget_tokens'];
    const body = {
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: typeof budget === 'number' ? budget + 1 : 1,
      ...counted,
    };
    return { input: { invokeModel: { body: Buffer.from(stringifyJson(body)).toString('base64') } } };
  },
  read: (reply) => fieldsOf(reply)['inputTokens'],
};

export const tokenCount: TokenCount = {
  path: () => '/messages/count_tokens',
  body(request, model) {
    const given = fieldsOf(request);
    const counted = COUNTED.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]]));
    return { model, ...Object.fromEntries(counted) };
  },
  read: (reply) => fieldsOf(reply)['input_tokens'],
};

/** `POST /messages/count_tokens`: counts what a request says, and takes no member that only generating needs. */
import { fieldsOf } from '../conversation/fields.ts';
import type { TokenCount } from '../conversation/format.ts';

const COUNTED = ['messages', 'system', 'tools', 'tool_choice', 'thinking', 'mcp_servers', 'context_management'];

export const tokenCount: TokenCount = {
  path: () => '/messages/count_tokens',
  body(request, model) {
    const given = fieldsOf(request);
    const counted = COUNTED.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]]));
    return { model, ...Object.fromEntries(counted) };
  },
  read: (reply) => fieldsOf(reply)['input_tokens'],
};

/** The gateway's own members in a relayed response. */
import { scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { ECHOED, responseId } from './response.ts';
import { encodeUsage } from './usage.ts';

/** Members that every response has, apart from its status and those that repeat the request. */
const PROMISED: Readonly<Record<string, unknown>> = {
  error: null,
  incomplete_details: null,
  output: [],
};

/** Required members that repeat the request. */
const REQUIRED = [
  'frequency_penalty',
  'instructions',
  'metadata',
  'parallel_tool_calls',
  'presence_penalty',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
];

/** Members that we replaced in the request: the response shows the client's values again. */
const REPLACED = ['metadata', 'safety_identifier', 'user'];

/** Members about stored state, which is the gateway's own. */
const STATE = ['background', 'conversation', 'previous_response_id', 'store'];

/**
 * A response with our members in it, and with those that its service omitted; existing ones stay unchanged.
 * @param closing for a finished response
 */
export function patchResponse(text: string, value: Fields, stamp: Stamp, closing?: Closing): string {
  const list: Edit[] = [
    { key: 'id', json: JSON.stringify(responseId(stamp.id)) },
    { key: 'model', json: JSON.stringify(stamp.model) },
    { key: 'provider', json: JSON.stringify(stamp.provider) },
  ];
  const asked = stamp.echo?.() ?? ECHOED;
  for (const key of REPLACED) if (key in value) list.push({ key, json: stringifyJson(asked[key]) });
  for (const key of STATE) if (asked[key] !== ECHOED[key]) list.push({ key, json: stringifyJson(asked[key]) });
  if (value['object'] === undefined) list.push({ key: 'object', json: '"response"' });
  if (value['created_at'] === undefined) list.push({ key: 'created_at', json: String(stamp.created) });
  const status = value['status'] ?? (closing === undefined ? 'in_progress' : 'completed');
  const promised = { status, ...PROMISED, completed_at: (status === 'completed' ? closing?.completed : null) ?? null };
  for (const [key, member] of Object.entries(promised)) {
    if (value[key] === undefined) list.push({ key, json: JSON.stringify(member) });
  }
  for (const key of REQUIRED) if (value[key] === undefined) list.push({ key, json: stringifyJson(asked[key]) });
  if (closing !== undefined) {
    if (closing.usage !== undefined) {
      list.push({ key: 'usage', json: stringifyJson(encodeUsage(closing.usage, closing.cost)) });
    }
    if (closing.metadata !== undefined) {
      list.push({ key: closing.metadata.key, json: JSON.stringify(closing.metadata.value) });
    }
  }
  return patchMembers(text, scanMembers(text), list);
}

/** Decodes a client's request in the Gemini format. */
import { invalidField } from '../../base/errors.ts';
import type { Conversation, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, nonEmptyText, textOrUndefined } from '../conversation/fields.ts';
import { checkPart, decodeContents } from './decode-contents.ts';
import { decodeGeneration } from './decode-generation.ts';
import { decodeTools } from './decode-tools.ts';
import { listMember, member, objectMember, otherMembers } from './names.ts';

/** The gateway's own request members, never forwarded. `model` and `stream` are in the URL of clients and services. */
export const OWN_MEMBERS: readonly string[] = [
  'cache_control',
  'deferred_tools',
  'max_tool_calls',
  'metadata',
  'model',
  'models',
  'plugins',
  'preset',
  'provider',
  'route',
  'session_id',
  'stop_server_tools_when',
  'stream',
  'trace',
  'user',
];
const NAMED_MEMBERS = new Set([
  ...OWN_MEMBERS,
  'contents',
  'generationConfig',
  'serviceTier',
  'systemInstruction',
  'toolConfig',
  'tools',
]);

/**
 * Raw numbers in the body (`JsonDocument.exact`) keep their digits.
 * @throws GatewayError 400 with the path of the invalid field, for a body that `check` has not seen
 */
export function decode(body: unknown): Conversation {
  const request = fieldsOf(body);
  const system = decodeInstruction(request);
  const messages = decodeContents(listOf(request['contents']));
  if (messages.length === 0) throw invalidField('contents', 'must have a part');
  const conversation: Conversation = {
    messages: [...(system.length > 0 ? [{ role: 'system' as const, parts: system }] : []), ...messages],
    settings: {},
    ...decodeTools(listMember(request, 'tools', 'tools'), objectMember(request, 'toolConfig', 'toolConfig')),
  };
  const extras = otherMembers(request, NAMED_MEMBERS);
  if (extras !== undefined) conversation.extras = { gemini: extras };
  decodeGeneration(objectMember(request, 'generationConfig', 'generationConfig'), conversation);
  const tier = tierOf(request);
  if (tier !== undefined) conversation.settings.serviceTier = tier;
  return conversation;
}

export function tierOf(request: Fields): string | undefined {
  return nonEmptyText(member(request, 'serviceTier'))?.toLowerCase();
}

function decodeInstruction(request: Fields): Part[] {
  const parts = listMember(instructionOf(request), 'parts', 'systemInstruction.parts');
  return parts.flatMap((part, index): Part[] => {
    const at = `systemInstruction.parts[${index}]`;
    if (isFields(part)) checkPart(part, at);
    const text = isFields(part) ? textOrUndefined(part['text']) : undefined;
    if (text === undefined) throw invalidField(at, 'must be a text');
    return text === '' ? [] : [{ type: 'text', text }];
  });
}

function instructionOf(request: Fields): Fields {
  return objectMember(request, 'systemInstruction', 'systemInstruction');
}

/** A `generateContent` request as a chat request. Throws GatewayError 400 with the path of what cannot be expressed. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, isFields, listOf, textOrUndefined } from '../conversation/fields.ts';
import { generationMembers } from './generation.ts';
import { messagesOf } from './messages.ts';
import { listMember, member, objectMember } from './names.ts';
import { toolMembers } from './tools.ts';

/** How chat answers become replies of this format. */
export interface ContentShape {
  /** Thoughts are shown; otherwise only their signatures are. */
  thoughts: boolean;
}

/** Members of the gateway, which are those of chat. */
const OWN = ['provider', 'models', 'user', 'session_id', 'metadata', 'trace', 'plugins', 'service_tier'];
/** Of Google's services alone. */
const PASSED = ['safetySettings', 'labels'];
const KNOWN = new Set(['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig', ...OWN, ...PASSED]);
/** `{"model": "models/..."}` in the body repeats the path. */
const REPEATED = new Set(['model']);

/** @param model of the path */
export function chatRequestOf(body: Fields, model: string, stream: boolean): { body: Fields; shape: ContentShape } {
  refuseOthers(body);
  const { members, thoughts } = generationMembers(objectMember(body, 'generationConfig', 'generationConfig'));
  const own = Object.fromEntries(OWN.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]));
  const passed = PASSED.flatMap((name) => {
    const value = member(body, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const messages = messagesOf(listOf(body['contents']));
  if (messages.length === 0) throw invalidField('contents', 'must have a part');
  return {
    body: {
      model,
      stream,
      messages: [...systemOf(objectMember(body, 'systemInstruction', 'systemInstruction')), ...messages],
      ...toolMembers(listOf(body['tools']), objectMember(body, 'toolConfig', 'toolConfig')),
      ...members,
      ...own,
      ...Object.fromEntries(passed),
    },
    shape: { thoughts },
  };
}

function refuseOthers(body: Fields): void {
  for (const name of Object.keys(body)) {
    const known = [...KNOWN].some((each) => each === name || member({ [name]: 1 }, each) !== undefined);
    if (known || REPEATED.has(name) || body[name] === null) continue;
    throw invalidField(name, 'is not supported');
  }
}

function systemOf(instruction: Fields): Fields[] {
  const texts = listMember(instruction, 'parts', 'systemInstruction.parts').map((part, index) => {
    const text = isFields(part) ? textOrUndefined(part['text']) : undefined;
    if (text === undefined) throw invalidField(`systemInstruction.parts[${index}]`, 'must be a text');
    return { type: 'text', text };
  });
  if (texts.length === 0) return [];
  return [{ role: 'system', content: texts.length === 1 ? texts[0]!.text : texts }];
}

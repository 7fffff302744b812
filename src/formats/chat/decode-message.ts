/** Decodes request messages (one variant per `role`, and the legacy `function`) into messages of the conversation. */
import type { Message, Part, ToolCallPart, ToolResultPart } from '../conversation/conversation.ts';
import {
  type Fields,
  fieldsOf,
  fieldsOrUndefined,
  listOf,
  nonEmptyText,
  restOf,
  textOf,
} from '../conversation/fields.ts';
import { decodeCitations } from './citation.ts';
import { decodeContent, decodeUrl } from './content.ts';
import { decodeReasoning } from './details.ts';

export function decodeMessages(values: readonly unknown[]): Message[] {
  // Legacy function calls have no ids: a call and its result share an id made from the call's position.
  let functionCall = '';
  return values.map((value, index) => {
    const message = fieldsOf(value);
    if (fieldsOrUndefined(message['function_call']) !== undefined) functionCall = `call_${index}`;
    return decodeMessage(message, functionCall);
  });
}

const PLAIN: ReadonlySet<string> = new Set(['role', 'content', 'name']);
const TOOL: ReadonlySet<string> = new Set(['role', 'content', 'name', 'tool_call_id']);
const ASSISTANT: ReadonlySet<string> = new Set([
  ...PLAIN,
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'refusal',
  'images',
  'audio',
  'annotations',
  'tool_calls',
  'function_call',
]);

function decodeMessage(value: Fields, functionCall: string): Message {
  const role = textOf(value['role']);
  if (role === 'tool' || role === 'function') return decodeToolMessage(value, functionCall);
  const assistant = role === 'assistant';
  const message: Message = {
    role: role as Message['role'],
    parts: assistant ? decodeAssistant(value, functionCall) : decodeContent(value['content']),
  };
  const name = nonEmptyText(value['name']);
  if (name !== undefined) message.name = name;
  const others = restOf(value, assistant ? ASSISTANT : PLAIN);
  if (others !== undefined) message.extras = { chat: others };
  return message;
}

function decodeToolMessage(value: Fields, functionCall: string): Message {
  const parts = decodeContent(value['content']);
  const result: ToolResultPart = {
    type: 'toolResult',
    callId: nonEmptyText(value['tool_call_id']) ?? functionCall,
    parts,
  };
  const last = parts.at(-1);
  if (last?.cache !== undefined) {
    // A mark on the last part of a result covers the whole result (envoyproxy/ai-gateway#2358).
    result.cache = last.cache;
    delete last.cache;
  }
  const message: Message = { role: 'tool', parts: [result] };
  const name = nonEmptyText(value['name']);
  if (name !== undefined) message.name = name;
  const others = restOf(value, TOOL);
  if (others !== undefined) message.extras = { chat: others };
  return message;
}

/** In the format's order: reasoning, content, refusal, images, audio, calls. */
function decodeAssistant(message: Fields, functionCall: string): Part[] {
  return [...decodeAssistantParts(message, () => functionCall)];
}

/** The parts of an assistant message of a request or reply. `invent` makes ids for calls without one. */
export function decodeAssistantParts(message: Fields, invent: () => string): Part[] {
  const calls = decodeCalls(message, invent);
  const { parts, signatures } = decodeReasoning(message, new Set(calls.map((call) => call.id)));
  const content = decodeContent(message['content']);
  const citations = decodeCitations(message['annotations']);
  if (citations.length > 0) {
    const target = content.find((part) => part.type === 'text');
    if (target !== undefined) target.citations = citations;
    else content.push({ type: 'text', text: '', citations });
  }
  parts.push(...content);
  const refusal = nonEmptyText(message['refusal']);
  if (refusal !== undefined) parts.push({ type: 'refusal', text: refusal });
  for (const image of listOf(message['images'])) {
    const url = textOf(fieldsOrUndefined(fieldsOrUndefined(image)?.['image_url'])?.['url']);
    if (url !== '') parts.push({ type: 'image', source: decodeUrl(url) });
  }
  const audio = decodeAudio(fieldsOrUndefined(message['audio']));
  if (audio !== undefined) parts.push(audio);
  for (const call of calls) {
    const signature = signatures.get(call.id);
    if (signature !== undefined) call.signature = signature;
    parts.push(call);
  }
  return parts;
}

function decodeAudio(audio: Fields | undefined): Part | undefined {
  if (audio === undefined) return undefined;
  const part: Part = { type: 'audio' };
  if (typeof audio['id'] === 'string') part.id = audio['id'];
  if (typeof audio['transcript'] === 'string') part.transcript = audio['transcript'];
  if (typeof audio['expires_at'] === 'number') part.expiresAt = audio['expires_at'];
  const data = nonEmptyText(audio['data']);
  if (data !== undefined) part.source = { kind: 'bytes', mediaType: 'audio', data };
  return part;
}

const CALL: ReadonlySet<string> = new Set(['id', 'index', 'type', 'function', 'custom']);

function decodeCalls(message: Fields, invent: () => string): ToolCallPart[] {
  const calls: ToolCallPart[] = [];
  for (const entry of listOf(message['tool_calls'])) {
    const value = fieldsOrUndefined(entry);
    if (value === undefined) continue;
    const custom = fieldsOrUndefined(value['custom']);
    const call = fieldsOrUndefined(value['function']) ?? custom ?? {};
    if (nonEmptyText(call['name']) === undefined) continue;
    const id = nonEmptyText(value['id']) ?? invent();
    const part: ToolCallPart = {
      type: 'toolCall',
      id,
      name: textOf(call['name']),
      arguments: argumentsText(custom === call ? call['input'] : call['arguments']),
    };
    if (custom === call) part.custom = true;
    const others = restOf(value, CALL);
    if (others !== undefined) part.extras = { chat: others };
    calls.push(part);
  }
  const legacy = fieldsOrUndefined(message['function_call']);
  if (nonEmptyText(legacy?.['name']) !== undefined) {
    calls.push({
      type: 'toolCall',
      id: invent(),
      name: textOf(legacy?.['name']),
      arguments: argumentsText(legacy?.['arguments']),
    });
  }
  return calls;
}

/** Some services send the arguments as an object. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

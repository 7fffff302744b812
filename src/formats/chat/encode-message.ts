/** Encodes the conversation's messages as messages of a chat request. */

import { inputText } from '../conversation/call-input.ts';
import type {
  Message,
  OpaquePart,
  Part,
  ReasoningOrigin,
  ReasoningPart,
  ToolResultPart,
} from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { plainDocument } from '../conversation/plain-document.ts';
import { encodeCitation } from './citation.ts';
import { type ContentRules, encodeContent, encodeUrl } from './content.ts';
import { encodeCallSignature, encodeDetails, isDetailEntry } from './details.ts';
import type { ChatDialect } from './dialect.ts';
import { mergeStrictly } from './strict-template.ts';

interface MessageRules {
  dialect: ChatDialect;
  losses: Losses;
  /** The origin whose signed or encrypted reasoning the upstream can read. */
  origin: ReasoningOrigin;
}

export function encodeMessages(messages: readonly Message[], rules: MessageRules): Fields[] {
  const content: ContentRules = { cacheControl: rules.dialect.cacheControl === true, losses: rules.losses };
  const encoded: Fields[] = [];
  /**
   * Images from tool results. They follow the run of tool messages, so that calls and results stay adjacent
   * (BerriAI/litellm#34462).
   */
  let pictures: Part[] = [];
  const flush = () => {
    if (pictures.length > 0) encoded.push({ role: 'user', content: encodeContent(pictures, content) });
    pictures = [];
  };
  for (const message of messages) {
    const results = message.parts.filter((part) => part.type === 'toolResult');
    if (results.length === 0) flush();
    for (const result of results) {
      encoded.push(encodeResult(result, message, content, rules));
      pictures.push(...resultParts(result).filter((part) => part.type !== 'text'));
    }
    if (message.role === 'tool') continue;
    const parts = results.length === 0 ? message.parts : message.parts.filter((part) => part.type !== 'toolResult');
    if (parts.length === 0 && results.length > 0) continue;
    if (message.role === 'assistant' && parts.length > 0 && parts.every(isForeign)) {
      rules.losses.drop('messages', 'no block of a message can be sent to this upstream');
      continue;
    }
    if (results.length > 0) flush();
    encoded.push(
      message.role === 'assistant'
        ? encodeAssistant({ ...message, parts }, content, rules)
        : encodePlain(message, parts, content, rules),
    );
  }
  flush();
  return rules.dialect.strictTemplate ? mergeStrictly(encoded) : encoded;
}

/** Only the format that the part came from can read it. */
function isForeign(part: Part): boolean {
  return part.type === 'opaque' && part.origin !== 'chat';
}

function encodePlain(message: Message, parts: readonly Part[], content: ContentRules, rules: MessageRules): Fields {
  const role = message.role === 'developer' && !rules.dialect.developerRole ? 'system' : message.role;
  return { role, content: markedContent(parts, message, content), ...named(message), ...message.extras?.chat };
}

/** The chat format has no cache mark on messages: it is moved to the last part. */
function markedContent(
  parts: readonly Part[],
  holder: Pick<Message, 'cache'>,
  content: ContentRules,
): string | Fields[] {
  const last = parts.at(-1);
  if (holder.cache === undefined || !content.cacheControl || last === undefined || last.type === 'opaque') {
    return encodeContent(parts, content);
  }
  return encodeContent([...parts.slice(0, -1), { ...last, cache: last.cache ?? holder.cache }], content);
}

function named(message: Message): Fields | undefined {
  return message.name === undefined ? undefined : { name: message.name };
}

/** The parts of a result, with those of text documents. */
function resultParts({ parts }: ToolResultPart): Part[] {
  return parts.flatMap((part) => (part.type === 'file' ? (plainDocument(part) ?? [part]) : [part]));
}

function encodeResult(result: ToolResultPart, message: Message, content: ContentRules, rules: MessageRules): Fields {
  if (result.isError === true) rules.losses.drop('is_error', 'chat completions cannot mark a tool result as an error');
  const texts = resultParts(result).filter((part) => part.type === 'text');
  return {
    role: 'tool',
    tool_call_id: result.callId,
    content: markedContent(texts, result, content),
    ...named(message),
    ...message.extras?.chat,
  };
}

function encodeAssistant(message: Message, content: ContentRules, rules: MessageRules): Fields {
  const encoded: Fields = { role: 'assistant', content: null };
  const reasoning: (ReasoningPart | OpaquePart)[] = [];
  const written: Part[] = [];
  const details: Fields[] = [];
  const calls: Fields[] = [];
  const images: Fields[] = [];
  let refusal = '';
  for (const part of message.parts) {
    switch (part.type) {
      case 'reasoning':
        reasoning.push(part);
        break;
      case 'refusal':
        refusal += part.text;
        break;
      case 'image':
        images.push({ type: 'image_url', image_url: { url: encodeUrl(part.source, 'image') } });
        break;
      case 'audio':
        encoded['audio'] = encodeAudio(part);
        break;
      case 'toolCall':
        calls.push(encodeCall(part, rules.dialect));
        break;
      case 'opaque':
        if (part.origin === 'chat' && isDetailEntry(part.value)) reasoning.push(part);
        else if (isForeign(part))
          rules.losses.drop(`${part.origin} blocks`, `only the ${part.origin} format can read them`);
        else written.push(part);
        break;
      default:
        written.push(part);
    }
  }
  const text = markedContent(written, message, content);
  if (text !== '') encoded['content'] = text;
  else if (calls.length === 0) encoded['content'] = '';
  encodeReasoningParts(encoded, message, reasoning, details, rules);
  if (refusal !== '') encoded['refusal'] = refusal;
  if (images.length > 0) encoded['images'] = images;
  if (rules.dialect.reasoningDetails) encodeAnnotations(encoded, written);
  if (calls.length > 0) encoded['tool_calls'] = calls;
  return { ...encoded, ...named(message), ...message.extras?.chat };
}

function encodeCall(part: Part & { type: 'toolCall' }, dialect: ChatDialect): Fields {
  const extras = part.extras?.chat;
  if (part.custom)
    return { id: part.id, type: 'custom', custom: { name: part.name, input: part.arguments }, ...extras };
  const written = dialect.anyArguments ? part.arguments || '{}' : inputText(part);
  return { id: part.id, type: 'function', function: { name: part.name, arguments: written }, ...extras };
}

export function encodeAudio(part: Part & { type: 'audio' }): Fields {
  return {
    ...(part.id !== undefined && { id: part.id }),
    ...(part.source?.kind === 'bytes' && { data: part.source.data }),
    ...(part.transcript !== undefined && { transcript: part.transcript }),
    ...(part.expiresAt !== undefined && { expires_at: part.expiresAt }),
  };
}

/** Encodes earlier thinking that the upstream accepts: all of it as details, or the unsigned part as plain text. */
function encodeReasoningParts(
  encoded: Fields,
  message: Message,
  parts: readonly (ReasoningPart | OpaquePart)[],
  details: Fields[],
  rules: MessageRules,
): void {
  const { dialect, losses } = rules;
  const signed = message.parts.filter((part) => part.type === 'toolCall' && part.signature !== undefined);
  if (dialect.reasoningDetails) {
    let index = 0;
    for (const part of parts) {
      if (part.type === 'reasoning') details.push(...encodeDetails(part, index));
      else details.push(part.value as Fields);
      index += 1;
    }
    for (const call of signed) {
      if (call.type === 'toolCall' && call.signature)
        details.push(encodeCallSignature(call.id, call.signature, index++));
    }
    if (details.length > 0) encoded['reasoning_details'] = details;
    return;
  }
  let plain = '';
  for (const part of parts) {
    if (part.type === 'opaque')
      throw new Uncarried('reasoning_details', 'the upstream does not accept past server tool calls');
    const free = part.signature === undefined && part.encrypted === undefined && part.origin === 'unknown';
    if (dialect.reasoningReplay !== undefined && free) plain += part.text;
    else losses.drop('reasoning', 'the upstream does not accept this kind of earlier reasoning');
  }
  if (plain !== '') encoded[dialect.reasoningReplay!] = plain;
  if (signed.length > 0) losses.drop('reasoning', 'the upstream does not accept call signatures');
}

function encodeAnnotations(encoded: Fields, parts: readonly Part[]): void {
  let offset = 0;
  const annotations: Fields[] = [];
  for (const part of parts) {
    if (part.type !== 'text') continue;
    for (const citation of part.citations ?? []) {
      const annotation = encodeCitation(citation, offset, offset + part.text.length);
      if (annotation !== undefined) annotations.push(annotation);
    }
    offset += part.text.length;
  }
  if (annotations.length > 0) encoded['annotations'] = annotations;
}

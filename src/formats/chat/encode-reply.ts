/** Encodes a complete answer for a client of the chat format. */
import { inputText } from '../conversation/call-input.ts';
import type { Choice, Part, ToolCallPart, Turn } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { completeLogprobs } from '../conversation/logprobs.ts';
import { encodeCitation } from './citation.ts';
import { encodeUrl } from './content.ts';
import { encodeBlock, encodeCallSignature, encodeDetails } from './details.ts';
import { encodeAudio } from './encode-message.ts';
import { closingUsage } from './usage.ts';

export function encodeReply(turn: Turn, stamp: Stamp, closing: Closing): Fields {
  const reply: Fields = {
    id: stamp.id,
    object: 'chat.completion',
    created: turn.created ?? stamp.created,
    model: stamp.model,
    provider: stamp.provider,
    system_fingerprint: turn.fingerprint ?? null,
  };
  if (turn.serviceTier !== undefined) reply['service_tier'] = turn.serviceTier;
  const { customTools = false } = stamp;
  reply['choices'] = turn.choices.map((choice, index) => encodeChoice(choice, index, customTools));
  const usage = closingUsage(closing);
  if (usage !== undefined) reply['usage'] = usage;
  if (turn.safeguards !== undefined) reply['safeguard_results'] = turn.safeguards;
  for (const [key, value] of Object.entries(turn.extras?.chat ?? {})) if (!(key in reply)) reply[key] = value;
  if (closing.alignment !== undefined) reply['alignment'] = closing.alignment;
  if (closing.metadata !== undefined) reply[closing.metadata.key] = closing.metadata.value;
  return reply;
}

function encodeChoice(choice: Choice, index: number, customTools: boolean): Fields {
  return {
    index,
    message: encodeMessage(choice.parts, customTools),
    finish_reason: choice.finish.unified,
    native_finish_reason: choice.finish.native,
    logprobs: choice.logprobs === undefined ? null : completeLogprobs(choice.logprobs),
  };
}

/** Joins several text parts into one text without changing a character. */
function encodeMessage(parts: readonly Part[], customTools: boolean): Fields {
  let content = '';
  let refusal = '';
  let reasoning = '';
  const details: unknown[] = [];
  const annotations: Fields[] = [];
  const images: Fields[] = [];
  const calls: Fields[] = [];
  let audio: Fields | undefined;
  let entries = 0;
  for (const part of parts) {
    switch (part.type) {
      case 'text': {
        const offset = content.length;
        content += part.text;
        for (const citation of part.citations ?? []) {
          const annotation = encodeCitation(citation, offset, content.length);
          if (annotation !== undefined) annotations.push(annotation);
        }
        break;
      }
      case 'refusal':
        refusal += part.text;
        break;
      case 'reasoning':
        reasoning += part.text;
        details.push(...encodeDetails(part, entries++));
        break;
      case 'opaque': {
        const entry = encodeBlock(part, entries);
        if (entry === undefined) break;
        details.push(entry);
        entries += 1;
        break;
      }
      case 'image':
        images.push({ type: 'image_url', image_url: { url: encodeUrl(part.source, 'image') } });
        break;
      case 'audio':
        audio = encodeAudio(part);
        break;
      case 'toolCall':
        if (part.signature !== undefined) details.push(encodeCallSignature(part.id, part.signature, entries++));
        calls.push({
          id: part.id,
          index: calls.length,
          ...(part.custom && customTools
            ? { type: 'custom', custom: { name: part.name, input: part.arguments } }
            : { type: 'function', function: { name: part.name, arguments: argumentsOf(part) } }),
        });
        break;
      default:
    }
  }
  const message: Fields = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== '' || audio !== undefined) ? null : content,
    refusal: refusal === '' ? null : refusal,
  };
  if (reasoning !== '') message['reasoning'] = reasoning;
  if (details.length > 0) message['reasoning_details'] = details;
  if (annotations.length > 0) message['annotations'] = annotations;
  if (images.length > 0) message['images'] = images;
  if (audio !== undefined) message['audio'] = audio;
  if (calls.length > 0) message['tool_calls'] = calls;
  return message;
}

function argumentsOf(part: ToolCallPart): string {
  return part.custom ? inputText(part) : part.arguments || '{}';
}

/** Encodes a complete answer for a client of the messages format. */
import { GatewayError } from '../../base/errors.ts';
import { inputOf } from '../conversation/call-input.ts';
import type { OpaquePart, Part, ReasoningPart, TextPart, ToolCallPart, Turn } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { type Closing, costMembers, type Stamp } from '../conversation/format.ts';
import { sealBlock } from '../conversation/sealed-block.ts';
import { endedCall } from '../conversation/served-call.ts';
import { encodeCitation } from './citations.ts';
import { encodeFinish } from './finish.ts';
import { seal, sealOf } from './sealed.ts';
import { servedBlocks } from './served-calls.ts';
import { encodeUsage } from './usage.ts';

/** Encodes the first choice; this format cannot express images and audio. */
export function encodeReply(turn: Turn, stamp: Stamp, closing: Closing): Fields {
  const choice = turn.choices[0] ?? { parts: [], finish: { unified: 'stop' as const, native: null } };
  if (choice.finish.unified === 'error') {
    throw new GatewayError('provider_unavailable', 'the provider ended its answer with an error');
  }
  const native = turn.extras?.messages ?? {};
  return {
    id: stamp.id,
    type: 'message',
    role: 'assistant',
    model: stamp.model,
    provider: stamp.provider,
    content: choice.parts.flatMap(encodeBlocks),
    ...encodeFinish(choice.finish, answerOf(choice.parts)),
    container: null,
    ...native,
    ...(turn.safeguards && { safeguard_results: turn.safeguards }),
    usage: { ...encodeUsage(closing.usage ?? turn.usage, turn.serviceTier), ...costMembers(closing.cost) },
    ...(closing.metadata && { [closing.metadata.key]: closing.metadata.value }),
  };
}

function answerOf(parts: readonly Part[]): { calls: boolean; refused: boolean } {
  return {
    calls: parts.some((part) => part.type === 'toolCall'),
    refused: parts.some((part) => part.type === 'refusal' && part.text !== ''),
  };
}

/** The blocks of a part: none if it cannot be expressed, two for a call with a signature. */
export function encodeBlocks(part: Part): Fields[] {
  switch (part.type) {
    case 'text':
      return part.text === '' && part.citations === undefined ? [] : [textBlock(part)];
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: [] }];
    case 'reasoning':
      return reasoningBlocks(part);
    case 'toolCall': {
      const call = { ...callBlock(part), input: inputOf(part) };
      const signature = callSignature(part, part.signature?.value);
      return signature === undefined ? [call] : [signature, call];
    }
    case 'opaque':
      return part.origin === 'messages' ? [part.value as Fields] : foreignBlocks(part);
    default:
      return [];
  }
}

/** What the upstream did, if that can be shown, and its own block for the next request. */
function foreignBlocks(part: OpaquePart): Fields[] {
  const call = endedCall(part);
  const shown = call === undefined ? [] : servedBlocks(call);
  return part.value === undefined ? shown : [...shown, { type: 'redacted_thinking', data: sealBlock(part) }];
}

function textBlock(part: TextPart): Fields {
  const citations = part.citations?.map(encodeCitation).filter((citation) => citation !== undefined) ?? [];
  return { type: 'text', text: part.text, citations };
}

/** The start of a call's block, before its input is known. */
export function callBlock(part: ToolCallPart): Fields {
  const native = part.extras?.messages ?? {};
  return { type: 'tool_use', id: part.id, name: part.name, input: {}, caller: { type: 'direct' }, ...native };
}

/** Call blocks have no signature member, so a separate redacted block carries it to the client. */
export function callSignature(part: ToolCallPart, signature: string | undefined): Fields | undefined {
  if (part.signature === undefined || signature === undefined || signature === '') return undefined;
  return { type: 'redacted_thinking', data: seal({ origin: part.signature.origin, signature, callId: part.id }) };
}

/**
 * Visible thinking becomes a thinking block, encrypted thinking a redacted one. Signatures of this format's vendor are
 * unchanged, those of other vendors sealed. A thinking block always has a signature, possibly empty.
 */
function reasoningBlocks(part: ReasoningPart): Fields[] {
  const sealed = sealOf(part);
  const encrypted = part.encrypted !== undefined && part.encrypted !== '';
  if (part.text === '' && encrypted) return [{ type: 'redacted_thinking', data: sealed ?? part.encrypted }];
  const signature = sealed ?? part.signature ?? '';
  if (part.text === '' && signature === '') return [];
  const thinking = { type: 'thinking', thinking: part.text, signature };
  return encrypted && sealed === undefined
    ? [thinking, { type: 'redacted_thinking', data: part.encrypted }]
    : [thinking];
}

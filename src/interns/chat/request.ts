/** The request of a chat: only its last message is read. */
import { hasAtMost } from '../../base/characters.ts';
import { invalidField } from '../../base/errors.ts';
import type { ApprovalMode } from '../agents/index.ts';
import { internError } from '../errors.ts';
import type { ChatBody } from './schema.ts';

const LONGEST_PROMPT = 32_000;

export type ChatRequest =
  /** `sessionId` null: a new session with an id of our own. */
  | { readonly kind: 'prompt'; readonly sessionId: string | null; readonly text: string; readonly mode: ApprovalMode }
  | { readonly kind: 'answer'; readonly sessionId: string; readonly callId: string; readonly text: string };

/** @throws GatewayError 400 */
export function readChatRequest({ stream, messages, session_id, approval_mode }: ChatBody): ChatRequest {
  if (stream !== true) throw internError('bad_request', 'stream must be true: this operation only streams.');
  const path = `messages[${messages.length - 1}]`;
  const last = messages.at(-1)!;
  if (last.role === 'user') {
    return {
      kind: 'prompt',
      sessionId: session_id ?? null,
      text: checkedPrompt(`${path}.content`, textOf(`${path}.content`, last.content)),
      mode: approval_mode ?? 'self-drive',
    };
  }
  if (last.role !== 'tool') throw invalidField(`${path}.role`, 'must be user or tool in the last message');
  if (session_id === undefined) throw invalidField('session_id', 'is required to answer a tool call');
  if (typeof last.tool_call_id !== 'string' || last.tool_call_id === '') {
    throw invalidField(`${path}.tool_call_id`, 'must be the id of the tool call');
  }
  const text = textOf(`${path}.content`, last.content);
  return { kind: 'answer', sessionId: session_id, callId: last.tool_call_id, text };
}

/** @throws GatewayError 400 */
export function checkedPrompt(path: string, text: string): string {
  if (text.trim() === '') throw invalidField(path, 'must not be blank');
  if (!hasAtMost(text, LONGEST_PROMPT)) throw invalidField(path, `must have at most ${LONGEST_PROMPT} characters`);
  return text;
}

function textOf(path: string, content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw invalidField(path, 'must be a text or a list of text parts');
  return content
    .map((part: unknown, index) => {
      const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as Record<string, unknown>;
      if (type === 'text' && typeof text === 'string') return text;
      throw invalidField(`${path}[${index}]`, 'must be {"type": "text", "text": ...}: interns take text only');
    })
    .join('');
}

/** Requests of clients, decoded and encoded again in the format of an upstream, for the tests of spoken formats. */
import { readDocument, stringifyJson } from '../../base/json.ts';
import type { Conversation } from '../../formats/conversation/conversation.ts';
import type { EncodeTarget, SpokenFormat } from '../../formats/conversation/format.ts';
import { Losses } from '../../formats/conversation/losses.ts';
import { chat, messages } from '../../formats/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are read and written freely
export type Json = any;

export function decodedChat(body: Json): Conversation {
  return chat.decode(exact({ model: 'm', ...body }));
}

export function decodedMessages(body: Json): Conversation {
  return messages.decode(exact({ model: 'm', max_tokens: 1000, ...body }));
}

/** As the gateway parses a request: digits survive where the value is JSON text already. */
function exact(body: Json): unknown {
  return readDocument(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))).exact;
}

export interface SentRequest {
  text: string;
  body: Json;
  /** What was reported as dropped, in order. */
  dropped: string[];
}

export function sent(format: SpokenFormat, conversation: Conversation, more: Partial<EncodeTarget> = {}): SentRequest {
  const losses = new Losses();
  const target: EncodeTarget = {
    model: 'model',
    stream: false,
    maxOutputTokens: null,
    origin: 'anthropic-claude-v1',
    user: 'user-hash',
    dialect: {},
    ...more,
  };
  const text = stringifyJson(format.encode(conversation, target, losses));
  return { text, body: JSON.parse(text), dropped: losses.dropped.map(({ what }) => what) };
}

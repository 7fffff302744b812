/**
 * The wire formats of conversations, served and spoken, one folder each. All translate through `conversation/`. Not
 * here: embeddings, rerank and images, which have a single public format.
 */
import { chat } from './chat/index.ts';
import { cohere } from './cohere/index.ts';
import type { FormatId } from './conversation/conversation.ts';
import type { SpokenFormat } from './conversation/format.ts';
import { converse } from './converse/index.ts';
import { gemini } from './gemini/index.ts';
import { messages } from './messages/index.ts';
import { responses } from './responses/index.ts';

export { chat, messages, responses };

const SPOKEN: Partial<Record<FormatId, SpokenFormat>> = { chat, cohere, converse, gemini, messages, responses };

/** Every format that upstreams can speak. */
export const SPOKEN_FORMS = Object.keys(SPOKEN) as readonly FormatId[];

/** Throws for a format that no upstream speaks; no provider kind uses one. */
export function spokenFormat(id: FormatId): SpokenFormat {
  const format = SPOKEN[id];
  if (format === undefined) throw new Error(`no upstream speaks the format ${id}`);
  return format;
}

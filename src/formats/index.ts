/**
 * The wire forms of a conversation: which are served, which are spoken. One folder each; the middle that they meet in is
 * `conversation/`. Not here: embeddings, rerank and images, whose public form is the only one.
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

/** Every form that upstreams are spoken to in. */
export const SPOKEN_FORMS = Object.keys(SPOKEN) as readonly FormatId[];

/** Throws for a form that no upstream is spoken to in; the list of provider kinds holds none. */
export function spokenFormat(id: FormatId): SpokenFormat {
  const format = SPOKEN[id];
  if (format === undefined) throw new Error(`the form ${id} is not spoken`);
  return format;
}

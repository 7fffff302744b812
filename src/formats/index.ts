/**
 * The wire formats of conversations, served and spoken, one folder each. All translate through `conversation/`. Not
 * here: embeddings, rerank and images, which have a single public format.
 */
import { chat } from './chat/index.ts';
import { cohere } from './cohere/index.ts';
import type { ServedFormat, SpokenFormat } from './conversation/format.ts';
import { type FormatId, registerFormats } from './conversation/registry.ts';
import { converse } from './converse/index.ts';
import { gemini, googleFailure, isGoogle, unservedForGoogle } from './gemini/index.ts';
import { messages } from './messages/index.ts';
import { responses } from './responses/index.ts';

export { responseOf } from './responses/response.ts';
export { chat, gemini, googleFailure, isGoogle, messages, responses, unservedForGoogle };

/** Every format: served, spoken or both. */
const FORMATS: readonly (ServedFormat | SpokenFormat)[] = [chat, messages, responses, cohere, converse, gemini];

/** Every format that clients can use. */
export const SERVED_FORMATS = FORMATS.filter((format): format is ServedFormat => 'encodeReply' in format);

const SPOKEN = new Map(
  FORMATS.flatMap((format): [FormatId, SpokenFormat][] => ('encode' in format ? [[format.id, format]] : [])),
);

/** Every format that upstreams can speak. */
export const SPOKEN_FORMATS: readonly FormatId[] = [...SPOKEN.keys()];

registerFormats(FORMATS.map(({ id }) => id));

/** Throws for a format that no upstream speaks; no provider kind uses one. */
export function spokenFormat(id: FormatId): SpokenFormat {
  const format = SPOKEN.get(id);
  if (format === undefined) throw new Error(`no upstream speaks the format ${id}`);
  return format;
}

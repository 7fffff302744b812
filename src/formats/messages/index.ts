/**
 * The messages format: spoken by clients of `POST /messages` and, upstream, by Anthropic and compatible services.
 * Contains both halves and the relay between them; pure functions only.
 */

import { FACT_MEMBERS } from '../conversation/fact-members.ts';
import type { PromptOverhead, ServedFormat, SpokenFormat } from '../conversation/format.ts';
import { loggedMessages } from '../conversation/logged-content.ts';
import { renewed } from '../conversation/renewal.ts';
import { textsWith } from '../texts/index.ts';
import { check } from './check.ts';
import { decode } from './decode.ts';
import { decodeReply } from './decode-reply.ts';
import { MessagesDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { encodeReply } from './encode-reply.ts';
import { MessagesEncoder } from './encoder.ts';
import { callIds, facts, images } from './facts.ts';
import { decodeFailure, encodeFailure } from './failure.ts';
import { fileWords } from './file-words.ts';
import { compactionIn, history } from './history.ts';
import { operation } from './operation.ts';
import { relay } from './relay.ts';
import { schema } from './schema.ts';
import { searchTrace } from './search-trace.ts';
import { tokenCount } from './token-count.ts';
import { toolTrace } from './tool-trace.ts';

export type { MessagesDialect } from './dialect.ts';
/** Parts of the encoding that the converse format shares, because it passes Claude's parameters through. */
export {
  argumentsSchema,
  begunText,
  encodeMaxTokens,
  encodeThinking,
  type Surroundings,
  samplingFor,
} from './encode-settings.ts';
export { type Generation, generationOf } from './generation.ts';
export { structuredSchema } from './structured-schema.ts';
export { bedrockTokenCount, vertexTokenCount } from './token-count.ts';

/** Anthropic documents up to 804 tokens for tools (platform.claude.com, "Tool use system prompt token count"). */
export const CLAUDE_OVERHEAD: PromptOverhead = { plain: 256, tools: 1024 };

export const messages: ServedFormat & SpokenFormat = {
  id: 'messages',
  operation,
  path: '/messages',
  schema,
  check,
  facts,
  factMembers: [...FACT_MEMBERS, 'fallbacks'],
  decode,
  callIds,
  texts: textsWith(),
  loggedContent: (document) => loggedMessages(document, 'messages', 'system'),
  images,
  fileWords,
  history,
  searchTrace,
  toolTrace,
  ownFeatures: ['mcp_servers', 'container'],
  ownContent: compactionIn,
  threadMember: 'thread',
  lacksImages: true,
  encodeReply,
  encoder: (stamp) => new MessagesEncoder(stamp),
  encodeFailure,
  renew: (json, { id, metadataKey }) =>
    renewed(json, { members: { id: () => JSON.stringify(id) }, nested: 'message', metadataKey }),
  relay,
  encode,
  decodeReply: (value) => decodeReply(value),
  decoder: () => new MessagesDecoder(),
  decodeFailure,
  // Cloud providers accept bytes only (platform.claude.com, "Vision").
  wantsBytes: (_kind, _url, dialect) => dialect.messages?.hosted !== undefined,
  tokenCount,
  keepsThreads: (dialect) => dialect.messages?.threads === true,
  promptOverhead: CLAUDE_OVERHEAD,
  searchesWeb: ({ dialect }) => dialect.messages?.webSearch === true,
};

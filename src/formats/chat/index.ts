/**
 * The chat format: spoken by clients of `POST /chat/completions` and, in provider dialects, by most upstreams. Contains
 * both halves and the relay between them; pure functions only.
 */

import { FACT_MEMBERS } from '../conversation/fact-members.ts';
import type { ServedFormat, SpokenFormat } from '../conversation/format.ts';
import { loggedMessages } from '../conversation/logged-content.ts';
import { renewed } from '../conversation/renewal.ts';
import { textsWith } from '../texts/index.ts';
import { check } from './check.ts';
import { settled } from './configuration-update.ts';
import { debugEvent } from './debug-event.ts';
import { decode } from './decode.ts';
import { decodeReply } from './decode-reply.ts';
import { ChatDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { encodeFailure } from './encode-failure.ts';
import { encodeReply } from './encode-reply.ts';
import { ChatEncoder } from './encoder.ts';
import { callIds, facts, images } from './facts.ts';
import { decodeFailure } from './failure.ts';
import { fileWords } from './file-words.ts';
import { history } from './history.ts';
import { operation } from './operation.ts';
import { relay } from './relay.ts';
import { schema } from './schema.ts';
import { searchTrace } from './search-trace.ts';
import { toolTrace } from './tool-trace.ts';

export type { ChatDialect, ReasoningRule } from './dialect.ts';

/** A service refuses the other types itself if it does not know them; custom tools have a substitute. */
const ALL_BUT_CUSTOM = ['additional_tools', 'apply_patch', 'local_shell', 'namespace', 'tool_search', 'web_search'];

export const chat: ServedFormat & SpokenFormat = {
  id: 'chat',
  operation,
  path: '/chat/completions',
  schema,
  check,
  settled,
  facts,
  factMembers: FACT_MEMBERS,
  decode,
  callIds,
  texts: textsWith(),
  loggedContent: (document) => loggedMessages(document, 'messages'),
  images,
  fileWords,
  history,
  searchTrace,
  toolTrace,
  losesReasoning: true,
  encodeReply,
  encoder: (stamp) => new ChatEncoder(stamp),
  debugEvent,
  encodeFailure,
  renew: (json, { id, created, metadataKey }) =>
    renewed(json, { members: { id: () => JSON.stringify(id), created: () => String(created) }, metadataKey }),
  relay,
  encode,
  decodeReply: (value, dialect) => decodeReply(value, dialect.chat),
  decoder: (dialect) => new ChatDecoder(dialect.chat),
  decodeFailure,
  longestToolName: 64,
  relayedTools: (dialect) => (dialect.chat?.customTools ? 'all' : ALL_BUT_CUSTOM),
  holdsAnswerImage: () => true,
  choosesAmong: (dialect) => dialect.chat?.allowedTools === true,
  nativeTools: (dialect) => (dialect.chat?.customTools === true ? ['custom'] : []),
  showsHiddenReasoning: (dialect) => dialect.chat?.reasoning !== 'object',
  searchesWeb: ({ dialect }) => dialect.chat?.webSearch === true,
  wantsBytes: (kind, _url, dialect) => dialect.chat?.mediaBytes?.includes(kind) ?? false,
};

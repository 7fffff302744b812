/**
 * The responses format, served at `POST /responses` and spoken by OpenAI, xAI and compatible upstreams: decoders,
 * encoders and the relay between them. Pure functions only. Requests here are stateless; `responses/` adds the state.
 */

import { FACT_MEMBERS } from '../conversation/fact-members.ts';
import type { ServedFormat, SpokenFormat } from '../conversation/format.ts';
import { loggedMessages } from '../conversation/logged-content.ts';
import { textsWith } from '../texts/index.ts';
import { check } from './check.ts';
import { decode } from './decode.ts';
import { decodeReply } from './decode-reply.ts';
import { ResponsesDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { isGeneratedImage } from './encode-items.ts';
import { encodeFailure, encodeReply } from './encode-reply.ts';
import { ResponsesEncoder } from './encoder.ts';
import { callIds, facts, images } from './facts.ts';
import { decodeFailure } from './failure.ts';
import { fileWords } from './file-words.ts';
import { history, ownContent } from './history.ts';
import { operation } from './operation.ts';
import { relay } from './relay.ts';
import { echo, renew } from './response.ts';
import { schema } from './schema.ts';
import { searchTrace } from './search-trace.ts';
import { toolTrace } from './tool-trace.ts';

export type { ResponsesDialect } from './dialect.ts';

const nativeTools: NonNullable<SpokenFormat['nativeTools']> = (dialect) => dialect.responses?.tools ?? [];

export const responses: ServedFormat & SpokenFormat = {
  id: 'responses',
  operation,
  path: '/responses',
  schema,
  check,
  facts,
  factMembers: FACT_MEMBERS,
  echo,
  decode,
  callIds,
  texts: textsWith({ names: 'subagent_id subagent_items', ids: 'subagent_id' }),
  loggedContent: (document) => loggedMessages(document, 'input', 'instructions'),
  images,
  fileWords,
  history,
  searchTrace,
  toolTrace,
  ownFeatures: ['context_management', 'prompt'],
  ownContent,
  encodeReply,
  encoder: (stamp) => new ResponsesEncoder(stamp),
  encodeFailure,
  renew,
  relay,
  encode,
  decodeReply,
  decoder: (dialect) => new ResponsesDecoder(dialect.responses?.origin),
  decodeFailure,
  holdsAnswerImage: isGeneratedImage,
  choosesAmong: () => true,
  longestToolName: 64,
  nativeTools,
  relayedTools: nativeTools,
};

/**
 * The Gemini format (`generateContent`): spoken by Google's clients and, upstream, by the Gemini API and Vertex AI.
 * Contains both halves and the relay between them; pure functions only.
 */
import { FACT_MEMBERS } from '../conversation/fact-members.ts';
import { fieldsOf, listOf } from '../conversation/fields.ts';
import type { ServedFormat, SpokenFormat } from '../conversation/format.ts';
import { loggedMessages } from '../conversation/logged-content.ts';
import { renewed } from '../conversation/renewal.ts';
import { check } from './check.ts';
import { decode } from './decode.ts';
import { callIds } from './decode-contents.ts';
import { showsThoughts } from './decode-generation.ts';
import { decodeReply } from './decode-reply.ts';
import { GeminiDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { encodeFailure } from './encode-failure.ts';
import { encodeReply } from './encode-reply.ts';
import { GeminiEncoder } from './encoder.ts';
import { facts, images } from './facts.ts';
import { decodeFailure } from './failure.ts';
import { familyOf } from './family.ts';
import { fileWords } from './file-words.ts';
import { history } from './history.ts';
import { wantsBytes } from './media.ts';
import { givenName, member } from './names.ts';
import { operation } from './operation.ts';
import { geminiPath } from './path.ts';
import { relay } from './relay.ts';
import { schema } from './schema.ts';
import { searchTrace } from './search-trace.ts';
import { texts } from './texts.ts';
import { tokenCount } from './token-count.ts';
import { toolTrace } from './tool-trace.ts';

export { checkPart } from './decode-contents.ts';
export type { GeminiDialect } from './dialect.ts';
export { googleFailure, isGoogle } from './google-client.ts';
export { camelCase, member, otherMembers, refuseTwins } from './names.ts';
export { geminiPath } from './path.ts';
export { vertexTokenCount } from './token-count.ts';
export { unservedForGoogle } from './unserved.ts';

export const gemini: ServedFormat & SpokenFormat = {
  id: 'gemini',
  operation,
  path: geminiPath,
  schema,
  check,
  facts,
  factMembers: FACT_MEMBERS,
  decode,
  callIds: (body) => callIds(listOf(fieldsOf(body)['contents'])),
  texts,
  loggedContent: (document) => loggedMessages(document, 'contents', givenName(document.structure, 'systemInstruction')),
  images,
  fileWords,
  history,
  searchTrace,
  toolTrace,
  echo: ({ structure }) => {
    const thinking = member(fieldsOf(member(structure, 'generationConfig')), 'thinkingConfig');
    return { includeThoughts: showsThoughts(fieldsOf(thinking)) };
  },
  encodeReply,
  encoder: (stamp) => new GeminiEncoder(stamp),
  encodeFailure,
  renew: (json, { id, metadataKey }) =>
    renewed(json, { members: { responseId: () => JSON.stringify(id) }, usage: 'usageMetadata', metadataKey }),
  relay,
  encode,
  decodeReply: (value, _dialect, seed) => decodeReply(value, seed),
  decoder: (_dialect, seed) => new GeminiDecoder(seed),
  decodeFailure,
  holdsAnswerImage: () => true,
  choosesAmong: () => true,
  longestToolName: 64,
  wantsBytes: (_kind, url) => wantsBytes(url),
  searchesWeb: ({ model }, withFunctions) => !withFunctions || familyOf(model).third,
  tokenCount,
};

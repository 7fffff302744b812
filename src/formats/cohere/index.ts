/** The chat form of Cohere, version 2, which only upstreams are spoken to in; pure functions only. */
import type { SpokenFormat } from '../conversation/format.ts';
import { decodeReply } from './decode-reply.ts';
import { CohereDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { decodeFailure } from './failure.ts';

export const cohere: SpokenFormat = {
  id: 'cohere',
  path: '/chat',
  encode,
  decodeReply: (value) => decodeReply(value),
  decoder: () => new CohereDecoder(),
  decodeFailure,
};

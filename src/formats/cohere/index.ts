/** Cohere's chat format, version 2, for upstreams only. Pure functions. */
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

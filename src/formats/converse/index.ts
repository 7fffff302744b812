/**
 * The converse form of Amazon Bedrock, which only upstreams are spoken to in; pure functions only. Not here: the binary
 * framing of its streams and the signing of its calls (`providers/`).
 */
import type { SpokenFormat } from '../conversation/format.ts';
import { decodeReply } from './decode-reply.ts';
import { ConverseDecoder } from './decoder.ts';
import { encode } from './encode.ts';
import { decodeFailure } from './failure.ts';

export { EXCEPTION } from './decoder.ts';
export type { ConverseDialect } from './dialect.ts';
export { failureFromException } from './failure.ts';
export { vendorOf } from './vendor.ts';

export const converse: SpokenFormat = {
  id: 'converse',
  path: (model, stream) => `/model/${encodeURIComponent(model)}/${stream ? 'converse-stream' : 'converse'}`,
  encode,
  decodeReply: (value) => decodeReply(value),
  decoder: () => new ConverseDecoder(),
  decodeFailure,
  wantsBytes: () => true,
};

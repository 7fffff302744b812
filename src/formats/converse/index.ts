/**
 * The Converse format of Amazon Bedrock, for upstreams only. Pure functions. Not here: the binary event-stream framing
 * and request signing (`providers/`).
 */
import type { SpokenFormat } from '../conversation/format.ts';
import { CLAUDE_OVERHEAD } from '../messages/index.ts';
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
  longestToolName: 64,
  wantsBytes: () => true,
  // Mostly used for the same models.
  promptOverhead: CLAUDE_OVERHEAD,
};

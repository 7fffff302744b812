/** Converts one request for endpoints of one spoken format, and its answer back. */
import type { Body } from '../../base/body.ts';
import type { TextEncoding } from '../../base/byte-text.ts';
import type { GatewayError } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import type { Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Closing, Dialect, SpokenFormat, Stamp, TurnDecoder } from '../../formats/conversation/format.ts';
import type { Losses } from '../../formats/conversation/losses.ts';

/** Writes a streamed answer, relayed or translated, with the same three calls as a `StreamEncoder`. */
export interface StreamWriter {
  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): string;
  end(closing: Closing): string;
  failure(error: GatewayError, closing: Closing): string;
}

/** A whole answer as read; `write` renders it for the client once its usage and cost are known. */
export interface WholeReply {
  turn: Turn;
  write(stamp: Stamp, closing: Closing): string;
}

/** One request prepared for endpoints of one spoken format; created per attempt. */
export interface Passage {
  readonly relayed: boolean;
  /** How the answer's texts stand for bytes, in `writer` and, where it asks for it, in `readWhole`. */
  readonly encoding: TextEncoding;
  readonly body: Body;
  readonly losses: Losses;
  /** `seed` is for generated ids, as in `SpokenFormat.decoder`. */
  decoder(seed: string): TurnDecoder;
  writer(stamp: Stamp): StreamWriter;
  /** Reads a whole answer. A failure reported with status 200 is returned as `failure`. */
  readWhole(body: Buffer, seed: string, encoding: TextEncoding): WholeReply | { failure: UpstreamFailure };
}

/** `value` is the parsed response. */
export function readTurn(
  text: string,
  spoken: SpokenFormat,
  dialect: Dialect,
  seed: string,
  parse: (text: string) => unknown = parseJson,
): { value: unknown; turn: Turn } | { failure: UpstreamFailure } {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    return { failure: notJson(text) };
  }
  const reply = spoken.decodeReply(value, dialect, seed);
  return 'failure' in reply ? reply : { value, turn: reply.turn };
}

function notJson(text: string): UpstreamFailure {
  const excerpt = text.slice(0, 200);
  return { kind: 'malformed', status: null, message: 'the upstream response is not JSON', raw: excerpt };
}

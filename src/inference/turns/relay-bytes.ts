/**
 * A relayed answer that nothing reads but its client stays byte text from the upstream's connection to the client's. The relay
 * writes texts of the gateway's own next to it, so these become byte text as well.
 */
import {
  byteText,
  byteTextsIn,
  joinedByteText,
  parseByteText,
  readable,
  readableIn,
  type TextEncoding,
} from '../../base/byte-text.ts';
import { GatewayError } from '../../base/errors.ts';
import { parseJson } from '../../base/json.ts';
import type { Finish, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Closing, RelayStream, Stamp } from '../../formats/conversation/format.ts';

export function stampInBytes(stamp: Stamp): Stamp {
  const { echo } = stamp;
  const model = byteText(stamp.model);
  const provider = byteText(stamp.provider);
  // The usual case costs no object.
  if (echo === undefined && model === stamp.model && provider === stamp.provider) return stamp;
  return { ...stamp, model, provider, ...(echo && { echo: () => byteTextsIn(echo()) }) };
}

/** Usage is left as it is: what the upstream wrote there is byte text already. */
export function closingInBytes(closing: Closing): Closing {
  return closing.metadata === undefined ? closing : { ...closing, metadata: byteTextsIn(closing.metadata) };
}

// What the gateway itself reads of such an answer.

/** The JSON value of an event; undefined if it is not JSON. */
export function parsedEvent(data: string, encoding: TextEncoding): unknown {
  try {
    return encoding === 'utf8' ? parseJson(data) : parseByteText(data);
  } catch {
    return undefined;
  }
}

export function readableText<Text extends string | null | undefined>(text: Text, encoding: TextEncoding): Text {
  return encoding === 'utf8' || typeof text !== 'string' ? text : (readable(text) as Text);
}

export function readableFinish(finish: Finish | undefined, encoding: TextEncoding): Finish | undefined {
  if (encoding === 'utf8' || finish === undefined) return finish;
  const native = readableText(finish.native, encoding);
  return native === finish.native ? finish : { ...finish, native };
}

export function readableFailure(failure: UpstreamFailure, encoding: TextEncoding): UpstreamFailure {
  return encoding === 'utf8' ? failure : readableIn(failure);
}

export class ByteRelayStream implements RelayStream {
  readonly #relay: RelayStream;

  constructor(relay: RelayStream) {
    this.#relay = relay;
  }

  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): string {
    return joinedByteText(this.#relay.event(name, data, value, events));
  }

  end(closing: Closing): string {
    return joinedByteText(this.#relay.end(closingInBytes(closing)));
  }

  failure(error: GatewayError, closing: Closing): string {
    return joinedByteText(this.#relay.failure(errorInBytes(error), closingInBytes(closing)));
  }
}

function errorInBytes({ type, message, status, details }: GatewayError): GatewayError {
  const { cause, ...others } = details;
  return new GatewayError(type, byteText(message), { ...byteTextsIn(others), status, cause });
}

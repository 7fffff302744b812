/** What became of an item: the receiver of its answer, its result, and the wire form of that. */
import type { TextEncoding } from '../../base/byte-text.ts';
import type { GatewayError } from '../../base/errors.ts';
import type { Cost } from '../../formats/conversation/format.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import type { AcceptedRequest, AnyFormat, Sink } from '../../inference/index.ts';
import type { Generation } from '../../spend/index.ts';
import { wireId } from '../batch.ts';
import type { ItemResult, StoredResult } from '../items.sql.ts';
import { usageOf } from './usage.ts';

/** As the wire shows it. */
export interface ItemError {
  type: string;
  message: string;
  param: string | null;
  error_type: string;
}

export const EXPIRED: ItemError = {
  type: 'batch_expired',
  message: 'the batch expired before this request ran',
  param: null,
  error_type: 'timeout',
};

export const CANCELLED: ItemError = {
  type: 'batch_cancelled',
  message: 'the batch was cancelled before this request ran',
  param: null,
  error_type: 'unmapped',
};

/** Texts of upstreams may contain what the database cannot store: U+0000, and half surrogate pairs. */
const storableText = (text: string) => text.toWellFormed().replaceAll('\0', '');

export function itemErrorOf({ type, message, details }: GatewayError): ItemError {
  return {
    type,
    message: storableText(message),
    param: details.path === undefined || details.path === '' ? null : storableText(details.path),
    error_type: type,
  };
}

/** Receives the answer to one item. */
export class ItemSink implements Sink {
  status = 0;
  body: Buffer | undefined;
  row: Generation | undefined;
  cost: Cost | undefined;
  /** The error that the request was answered with. */
  failure: GatewayError | undefined;
  #leave: (() => void) | undefined;
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  reply(status: number, _headers: Record<string, string>, body: WholeBody, encoding: TextEncoding = 'utf8'): void {
    this.status = status;
    this.body =
      typeof body === 'string'
        ? Buffer.from(body, encoding)
        : Buffer.isBuffer(body)
          ? body
          : Buffer.concat(body as readonly Buffer[]);
  }

  // Items are never streamed: `stream` is refused at submission.
  open(): void {
    throw new Error('an item of a batch was answered as a stream');
  }

  write(): boolean {
    throw new Error('an item of a batch was answered as a stream');
  }

  end(): void {}

  onDrain(): void {}

  onClose(run: () => void): void {
    this.#leave = run;
  }

  entered(row: Generation, cost?: Cost): void {
    this.row = row;
    this.cost = cost;
  }

  /** The request with a format that leaves its error here before it is encoded. */
  observed(request: AcceptedRequest): AcceptedRequest {
    const { format } = request;
    const encodeFailure: AnyFormat['encodeFailure'] = (error, about) => {
      this.failure = error;
      return format.encodeFailure(error, about);
    };
    return { ...request, format: { ...format, encodeFailure } };
  }

  /** Gives the request up, as a client that disconnects. */
  close(): void {
    this.#closed = true;
    this.#leave?.();
  }
}

export function completedResult(position: number, sink: ItemSink): ItemResult {
  return {
    position,
    outcome: 'completed',
    statusCode: sink.status,
    requestId: sink.row?.id ?? null,
    response: onOneLine(sink.body!),
    error: null,
    usage: usageOf(sink),
  };
}

/** Upstreams may write JSON over several lines. Within its strings there are no line breaks. */
function onOneLine(json: Buffer): Buffer {
  if (!json.includes(LINE_FEED) && !json.includes(CARRIAGE_RETURN)) return json;
  return Buffer.from(json.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte)));
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/** @param ran the receiver of its answer, if it ran: it may have cost something */
export function failedResult(position: number, error: ItemError, ran?: ItemSink): ItemResult {
  return {
    position,
    outcome: 'failed',
    statusCode: null,
    requestId: ran?.row?.id ?? null,
    response: null,
    error,
    usage: ran === undefined ? null : usageOf(ran),
  };
}

export function resultId(batchId: string, position: number): string {
  return `${wireId(batchId)}_${position}`;
}

/** The position of a result; undefined if the text is not the id of a result of this batch. */
export function resultPosition(batchId: string, text: string): number | undefined {
  const position = Number(text.slice(text.lastIndexOf('_') + 1));
  return resultId(batchId, position) === text ? position : undefined;
}

/** JSON of one result. The response is the bytes that the endpoint answered with. */
export function resultJson(batchId: string, result: StoredResult): Buffer {
  const { position, customId, statusCode, requestId, response, error } = result;
  const head = `{"id":${JSON.stringify(resultId(batchId, position))},"custom_id":${JSON.stringify(customId)}`;
  if (response === null) return Buffer.from(`${head},"response":null,"error":${JSON.stringify(error)}}`);
  const status = `"status_code":${statusCode},"request_id":${JSON.stringify(requestId)}`;
  return Buffer.concat([
    Buffer.from(`${head},"response":{${status},"body":`),
    response,
    Buffer.from('},"error":null}'),
  ]);
}

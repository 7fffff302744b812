/** The result of an item, and its wire representation. */
import type { GatewayError } from '../../base/errors.ts';
import type { WholeSink } from '../../inference/index.ts';
import { type Batch, wireId } from '../batch.ts';
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

/** Texts of upstreams may contain characters that the database cannot store: U+0000 and lone surrogates. */
const storableText = (text: string) => text.toWellFormed().replaceAll('\0', '');

export function itemErrorOf({ type, message, details }: GatewayError): ItemError {
  return {
    type,
    message: storableText(message),
    param: details.path === undefined || details.path === '' ? null : storableText(details.path),
    error_type: type,
  };
}

export function completedResult(position: number, sink: WholeSink): ItemResult {
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
export function failedResult(position: number, error: ItemError, ran?: WholeSink): ItemResult {
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
export function resultPosition({ id, total }: Pick<Batch, 'id' | 'total'>, text: string): number | undefined {
  const position = Number(text.slice(text.lastIndexOf('_') + 1));
  const isPosition = Number.isInteger(position) && position >= 0 && position < total;
  return isPosition && resultId(id, position) === text ? position : undefined;
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

/** What became of an item: the receiver of its answer, its result, and the wire form of that. */
import type { TextEncoding } from '../base/byte-text.ts';
import type { GatewayError } from '../base/errors.ts';
import type { WholeBody } from '../formats/direct/index.ts';
import type { Sink } from '../inference/index.ts';
import type { Generation } from '../spend/index.ts';
import { type UsageCounts, wireId } from './batch.ts';
import type { ItemResult, StoredResult } from './items.sql.ts';

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

  entered(row: Generation): void {
    this.row = row;
  }

  /** Gives the request up, as a client that disconnects. */
  close(): void {
    this.#closed = true;
    this.#leave?.();
  }
}

export function completedResult(position: number, { status, body, row }: ItemSink): ItemResult {
  return {
    position,
    outcome: 'completed',
    statusCode: status,
    requestId: row?.id ?? null,
    response: onOneLine(body!),
    error: null,
    usage: row === undefined ? null : usageOf(row),
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

export function failedResult(position: number, error: ItemError, row?: Generation): ItemResult {
  return {
    position,
    outcome: 'failed',
    statusCode: null,
    requestId: row?.id ?? null,
    response: null,
    error,
    usage: row === undefined ? null : usageOf(row),
  };
}

function usageOf({ usage, costNano, byokNano, isByok }: Generation): UsageCounts {
  const counts: UsageCounts = {
    cost_nano: Number(costNano),
    byok_nano: Number(byokNano),
    byok_items: isByok ? 1 : 0,
    ...(usage !== null && {
      prompt_tokens: usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h,
      completion_tokens: usage.output,
      reasoning_tokens: usage.reasoning,
      cached_tokens: usage.cacheRead,
      cache_write_5m_tokens: usage.cacheWrite5m,
      cache_write_1h_tokens: usage.cacheWrite1h,
      prompt_audio_tokens: usage.inputAudio ?? 0,
      completion_audio_tokens: usage.outputAudio ?? 0,
      completion_image_tokens: usage.outputImage ?? 0,
      web_search_requests: usage.webSearches ?? 0,
    }),
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

function resultId(batchId: string, position: number): string {
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

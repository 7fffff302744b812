/** The multipart form of an upload: its fields, and its one file as a stream. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import { Busboy } from '@fastify/busboy';
import { GatewayError } from '../base/errors.ts';

const MOST_FIELDS = 20;
const LONGEST_FIELD_BYTES = 4096;

export interface UploadedFile {
  filename: string | undefined;
  content: AsyncIterable<Buffer>;
}

/**
 * Reads a form. `take` gets the file while it arrives; fields that follow it are known when it has been read.
 * @throws GatewayError 400 for a form without exactly one file, 413 for a file past `maxBytes`
 */
export async function readForm<T>(
  body: AsyncIterable<Buffer>,
  contentType: string,
  maxBytes: number,
  take: (file: UploadedFile, fields: ReadonlyMap<string, string>) => Promise<T>,
): Promise<T> {
  const fields = new Map<string, string>();
  let taking: Promise<T> | undefined;
  let refusal: GatewayError | undefined;
  const parser = openParser(contentType);
  parser.on('field', (name, value) => void fields.set(name, value));
  parser.on('file', (name, stream, filename) => {
    if (name !== 'file' || taking !== undefined) {
      refusal ??= invalid(
        name === 'file' ? 'the form must have one file' : `the form has an unknown file ${name.slice(0, 100)}`,
      );
      stream.resume();
      return;
    }
    taking = take({ filename: filename === '' ? undefined : filename, content: bounded(stream, maxBytes) }, fields);
    // The file ends the form when it is refused.
    taking.catch((error: Error) => parser.destroy(error));
  });
  try {
    await pipeline(Readable.from(body), parser);
  } catch (error) {
    // The reason is that of the file where it was refused, and that of the form otherwise.
    const stopped = await taking?.catch((reason: unknown) => reason);
    const reason = stopped instanceof Error ? stopped : error;
    throw isMalformed(reason) ? invalid('the form is broken off or malformed') : reason;
  }
  if (refusal !== undefined) {
    await taking?.catch(() => {});
    throw refusal;
  }
  if (taking === undefined) throw invalid('file is missing');
  return taking;
}

/** The parser has no class or code for its own errors. */
function isMalformed(error: unknown): boolean {
  return error instanceof Error && !(error instanceof GatewayError) && /multipart|malformed/i.test(error.message);
}

function openParser(contentType: string): Busboy {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: { files: 2, fields: MOST_FIELDS, fieldSize: LONGEST_FIELD_BYTES },
      preservePath: true,
    });
  } catch {
    throw invalid('the header content-type must have a boundary');
  }
}

async function* bounded(stream: BusboyFileStream, maxBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new GatewayError('payload_too_large', `file is larger than ${maxBytes} bytes`);
    yield chunk;
  }
}

function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', message, { path: 'file' });
}

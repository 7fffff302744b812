/** The multipart form of an upload: its fields, and its one file as a stream. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import { Busboy } from '@fastify/busboy';
import { GatewayError, invalidField } from '../base/errors.ts';
import { UploadForm } from './schema.ts';

const MIME_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/;
const MOST_FIELDS = 20;
const LONGEST_FIELD_BYTES = 4096;

export interface UploadedFile {
  filename: string | undefined;
  /** As the client says; valid in a header. */
  mimeType: string;
  content: AsyncIterable<Buffer>;
}

/**
 * Reads a form. `take` gets the file while it arrives. Its content ends only when the whole form is valid, so that nothing of
 * a broken form is stored; then the fields are complete too.
 * @param mostBytes of the file, by the fields that came before the current byte
 * @throws GatewayError 400 for a form without exactly one file, 413 for a file that is too large
 */
export async function readForm<T>(
  body: AsyncIterable<Buffer>,
  contentType: string,
  mostBytes: (fields: ReadonlyMap<string, string>) => number,
  take: (file: UploadedFile, fields: ReadonlyMap<string, string>) => Promise<T>,
): Promise<T> {
  const fields = new Map<string, string>();
  let taking: Promise<T> | undefined;
  let file: BusboyFileStream | undefined;
  let refusal: GatewayError | undefined;
  const whole = Promise.withResolvers<void>();
  whole.promise.catch(() => {});
  const parser = openParser(contentType);
  // What is refused after the end of the form destroys it too.
  parser.on('error', () => {});
  parser.on('field', (name, value) => {
    if (!Object.hasOwn(UploadForm.properties, name)) {
      const accepted = Object.keys(UploadForm.properties).join(', ');
      refusal ??= invalidField(name.slice(0, 100) || '""', `is not a field of the form; accepted: ${accepted}`);
    }
    if (name === 'file') refusal ??= invalid('file must be a file, not a text');
    if (fields.has(name)) refusal ??= invalid(`${name.slice(0, 100)} is given more than once`);
    fields.set(name, value);
  });
  parser.on('fieldsLimit', () => {
    refusal ??= invalid(`the form must have at most ${MOST_FIELDS} fields`);
  });
  parser.on('file', (name, stream, filename, _encoding, mimeType) => {
    if (name !== 'file' || taking !== undefined) {
      refusal ??= invalid(
        name === 'file' ? 'the form must have one file' : `the form has an unknown file ${name.slice(0, 100)}`,
      );
      stream.resume();
      return;
    }
    file = stream;
    file.on('error', () => {});
    const content = bounded(stream, () => mostBytes(fields), whole.promise);
    taking = take(
      {
        filename: filename === '' ? undefined : filename,
        mimeType: MIME_TYPE.test(mimeType) ? mimeType : 'application/octet-stream',
        content,
      },
      fields,
    );
    // The file ends the form when it is refused.
    taking.catch((error: Error) => parser.destroy(error));
  });
  try {
    await pipeline(Readable.from(body), parser);
    if (refusal !== undefined) throw refusal;
    whole.resolve();
  } catch (error) {
    // The parser does not end the file when it is destroyed itself.
    file?.destroy(error as Error);
    whole.reject(error);
    // The reason is that of the file where it was refused, and that of the form otherwise.
    const stopped = await taking?.catch((reason: unknown) => reason);
    const reason = stopped instanceof Error ? stopped : error;
    throw isMalformed(reason) ? invalid('the form is broken off or malformed') : reason;
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

async function* bounded(
  stream: BusboyFileStream,
  mostBytes: () => number,
  whole: Promise<void>,
): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    const most = mostBytes();
    if (bytes > most) throw tooLarge(most);
    yield chunk;
  }
  await whole;
}

export function tooLarge(mostBytes: number): GatewayError {
  return new GatewayError('payload_too_large', `file is larger than ${mostBytes} bytes`, { path: 'file' });
}

function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', message, { path: 'file' });
}

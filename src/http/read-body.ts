/** Makes a document of a whole body. */
import type { IncomingHttpHeaders } from 'node:http';
import { readDocument, stringifyJson } from '../base/json.ts';
import { LARGE_DOCUMENT_BYTES } from '../base/json-pieces.ts';
import { checkJsonType } from './body.ts';
import { type Reading, readInSteps } from './large-body.ts';
import { isMultipart, readForm } from './multipart.ts';
import type { Operation } from './operation.ts';

interface BodyReading extends Reading {
  readonly headers: IncomingHttpHeaders;
  documentRead(document: Parameters<Reading['documentRead']>[0] | undefined): void;
}

/** Throws problems that are found at once; those found later go to `fail`. */
export function readBody(
  bytes: Buffer,
  { multipart, optional }: NonNullable<Operation['body']>,
  maxDepth: number,
  reading: BodyReading,
): void {
  if (multipart !== undefined && isMultipart(reading.headers)) {
    const read = async () => {
      const body = multipart.toBody(await readForm(bytes, reading.headers['content-type']!));
      if (!reading.closed) readInSteps(Buffer.from(stringifyJson(body)), { maxDepth }, reading);
    };
    read().catch((error: unknown) => reading.fail(error));
    return;
  }
  if (optional && bytes.length > 0) checkJsonType(reading.headers['content-type']);
  if (bytes.length >= LARGE_DOCUMENT_BYTES) readInSteps(bytes, { maxDepth }, reading);
  else reading.documentRead(bytes.length === 0 && optional ? undefined : readDocument(bytes, { maxDepth }));
}

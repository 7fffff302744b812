/** The multipart form of an upload to a vendor, as a stream of known length. */
import { randomUUID } from 'node:crypto';
import type { VendorRequest } from './call.ts';

interface OutgoingFile {
  filename: string;
  mimeType: string;
  bytes: number;
  content: AsyncIterable<Buffer>;
}

/** @param filename without quotes and control characters, @param fields of our own making */
export function uploadRequest(file: OutgoingFile, fields: Readonly<Record<string, string>>): VendorRequest {
  const boundary = `gatehouse-${randomUUID()}`;
  const simple = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const head = Buffer.from(
    `${simple.join('')}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${file.filename}"\r\n` +
      `content-type: ${file.mimeType}\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  async function* chunks() {
    yield head;
    yield* file.content;
    yield tail;
  }
  return {
    path: '/files',
    contentType: `multipart/form-data; boundary=${boundary}`,
    streamed: { bytes: head.length + file.bytes + tail.length, chunks: chunks() },
  };
}

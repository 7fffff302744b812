/** Encodes `multipart/form-data` bodies for services that take file uploads. */
import { createHash } from 'node:crypto';

interface FilePart {
  name: string;
  filename: string;
  mediaType: string;
  bytes: Buffer;
}

/** Fields first (a list is a field that repeats), then files, as uploads usually are. Deterministic: the boundary is a hash of the content. */
export function encodeMultipart(
  fields: Readonly<Record<string, string | readonly string[]>>,
  files: readonly FilePart[],
): { contentType: string; body: Buffer } {
  const hash = createHash('sha256');
  const given = Object.entries(fields).flatMap(([name, value]) => [value].flat().map((each) => [name, each] as const));
  for (const [name, value] of given) hash.update(`${name}\0${value}\0`);
  for (const { bytes } of files) hash.update(bytes);
  const boundary = `gatehouse-${hash.digest('hex').slice(0, 40)}`;
  const chunks: Buffer[] = [];
  const head = (lines: readonly string[]) => chunks.push(Buffer.from(`--${boundary}\r\n${lines.join('\r\n')}\r\n\r\n`));
  for (const [name, value] of given) {
    head([`Content-Disposition: form-data; name="${quoted(name)}"`]);
    chunks.push(Buffer.from(`${value}\r\n`));
  }
  for (const { name, filename, mediaType, bytes } of files) {
    head([
      `Content-Disposition: form-data; name="${quoted(name)}"; filename="${quoted(filename)}"`,
      `Content-Type: ${mediaType}`,
    ]);
    chunks.push(bytes, Buffer.from('\r\n'));
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: Buffer.concat(chunks) };
}

/** Escapes characters that would end the quotes or the line. */
function quoted(text: string): string {
  return text.replace(/["\r\n]/g, (found) => encodeURIComponent(found));
}

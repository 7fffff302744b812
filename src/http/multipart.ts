/** Reads a whole `multipart/form-data` body. */
import type { IncomingHttpHeaders } from 'node:http';
import { MIMEType } from 'node:util';
import { GatewayError } from '../base/errors.ts';
import type { Form, FormFile } from '../base/form.ts';

const MULTIPART = /^multipart\/form-data\s*;/i;
const MOST_PARTS = 100;
/** Of the head of a part. */
const MOST_HEAD_BYTES = 16 * 1024;

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  return type !== undefined && MULTIPART.test(type);
}

/** @throws GatewayError 400 for a malformed form */
export async function readForm(bytes: Buffer, contentType: string): Promise<Form> {
  let data: FormData;
  checkParts(bytes, contentType);
  try {
    const body = bytes as Buffer<ArrayBuffer>;
    data = await new Response(body, { headers: { 'content-type': contentType } }).formData();
  } catch {
    throw malformed();
  }
  const texts = new Map<string, string[]>();
  const files = new Map<string, FormFile[]>();
  for (const [name, value] of data) {
    if (typeof value === 'string') add(texts, name, value);
    else {
      const content = Buffer.from(await value.arrayBuffer());
      add(files, name, { filename: value.name, mediaType: value.type, bytes: content });
    }
  }
  return { texts, files };
}

/** Before the form is parsed, which takes seconds for many parts or long heads. */
function checkParts(bytes: Buffer, contentType: string): void {
  const delimiter = `--${boundaryOf(contentType)}`;
  let count = 0;
  for (let at = bytes.indexOf(delimiter); at !== -1; at = bytes.indexOf(delimiter, at + delimiter.length)) {
    const head = bytes.subarray(at + delimiter.length, at + delimiter.length + MOST_HEAD_BYTES);
    // The end, or part of a text: no part begins with it.
    if (head[0] === DASH && head[1] === DASH) continue;
    count += 1;
    if (count > MOST_PARTS) {
      throw new GatewayError('invalid_request', `the form must have at most ${MOST_PARTS} parts`, { path: '' });
    }
    if (!head.includes('\r\n\r\n')) throw malformed();
  }
}

const DASH = 0x2d;

function boundaryOf(contentType: string): string {
  try {
    const boundary = new MIMEType(contentType).params.get('boundary');
    if (boundary) return boundary;
  } catch {}
  throw malformed();
}

function malformed(): GatewayError {
  return new GatewayError('invalid_request', 'the form is broken off or malformed', { path: '' });
}

function add<Value>(map: Map<string, Value[]>, name: string, value: Value): void {
  const values = map.get(name);
  if (values === undefined) map.set(name, [value]);
  else values.push(value);
}

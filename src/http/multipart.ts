/** Reads a whole `multipart/form-data` body. */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import type { Form, FormFile } from '../base/form.ts';

const MULTIPART = /^multipart\/form-data\s*;/i;
const MOST_PARTS = 100;

export function isMultipart(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  return type !== undefined && MULTIPART.test(type);
}

/** @throws GatewayError 400 for a body that is not such a form */
export async function readForm(bytes: Buffer, contentType: string): Promise<Form> {
  let data: FormData;
  try {
    const body = bytes as Buffer<ArrayBuffer>;
    data = await new Response(body, { headers: { 'content-type': contentType } }).formData();
  } catch {
    throw new GatewayError('invalid_request', 'the form is broken off or malformed', { path: '' });
  }
  const texts = new Map<string, string[]>();
  const files = new Map<string, FormFile[]>();
  let count = 0;
  for (const [name, value] of data) {
    count += 1;
    if (count > MOST_PARTS) {
      throw new GatewayError('invalid_request', `the form must have at most ${MOST_PARTS} parts`, { path: '' });
    }
    if (typeof value === 'string') add(texts, name, value);
    else {
      const content = Buffer.from(await value.arrayBuffer());
      add(files, name, { filename: value.name, mediaType: value.type, bytes: content });
    }
  }
  return { texts, files };
}

function add<Value>(map: Map<string, Value[]>, name: string, value: Value): void {
  const values = map.get(name);
  if (values === undefined) map.set(name, [value]);
  else values.push(value);
}

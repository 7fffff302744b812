/** How the parts of a multipart form become members of a request. */
import { invalidField } from '../../base/errors.ts';
import type { Form, FormFile } from '../../base/form.ts';

/** The only file of a form. @throws GatewayError 400 */
export function oneFile(files: Form['files'], name: string): FormFile {
  for (const other of files.keys()) if (other !== name) throw invalidField(other, 'is not a file of this request');
  const [file, ...others] = files.get(name) ?? [];
  if (file === undefined) throw invalidField(name, 'must be a file');
  if (others.length > 0) throw invalidField(name, 'must be one file');
  if (file.bytes.length === 0) throw invalidField(name, 'must not be empty');
  return file;
}

/** @throws GatewayError 400 */
export function numberOf(name: string, text: string): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (!Number.isFinite(number)) throw invalidField(name, 'must be a number');
  return number;
}

/** @throws GatewayError 400 */
export function booleanOf(name: string, text: string): boolean {
  if (text !== 'true' && text !== 'false') throw invalidField(name, 'must be true or false');
  return text === 'true';
}

/** The text of a whole answer, as the pipeline gives it to a sink. */
import type { TextEncoding } from '../base/byte-text.ts';
import type { Sink } from '../inference/index.ts';

export type Body = Parameters<Sink['reply']>[2];

export function textOf(body: Body, encoding: TextEncoding = 'utf8'): string {
  if (typeof body === 'string') return encoding === 'latin1' ? Buffer.from(body, 'latin1').toString() : body;
  return (Buffer.isBuffer(body) ? body : Buffer.concat(body as readonly Buffer[])).toString();
}

/** The body of a request: bytes, text, or bytes in pieces, so that a large one need not be copied. */
export type Body = Buffer | string | readonly Buffer[];

/** Copying a body of up to this size into one buffer costs less than writing its pieces. */
export const COPIED_BODY_BYTES = 64 * 1024;

export function bodyBytes(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  if (Buffer.isBuffer(body)) return body.length;
  let bytes = 0;
  for (const piece of body) bytes += piece.length;
  return bytes;
}

/** For readers that need the body in one piece. */
export function joinedBody(body: Body): Buffer | string {
  return typeof body === 'string' || Buffer.isBuffer(body) ? body : Buffer.concat(body);
}

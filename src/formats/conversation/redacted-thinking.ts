/**
 * Encrypted thinking. The converse format wraps Anthropic's text (already base64) in another layer of base64. The
 * conversation keeps `encrypted` as received: sending it to Converse wraps text from Anthropic's API, and `unpacked`
 * removes that layer for Anthropic's API.
 */
const BASE64 = /^[A-Za-z0-9+/_-]{16,}={0,2}$/;

/** The value of `redactedContent`. */
export function toRedactedContent(encrypted: string): string {
  return inner(encrypted) === undefined ? Buffer.from(encrypted, 'utf8').toString('base64') : encrypted;
}

/** Anthropic's own text, whether it came from Anthropic's API or from Converse. */
export function unpacked(encrypted: string): string {
  return inner(encrypted) ?? encrypted;
}

/** The wrapped text, or undefined when there is none. Encrypted bytes do not decode to pure base64 by chance. */
function inner(encrypted: string): string | undefined {
  if (!BASE64.test(encrypted)) return undefined;
  const bytes = Buffer.from(encrypted, 'base64');
  const text = bytes.toString('latin1');
  return BASE64.test(text) && bytes.toString('base64') === encrypted ? text : undefined;
}

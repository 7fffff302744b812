/**
 * Encrypted thinking. The converse form packs the text that Anthropic gives (itself base64) in base64 once more. Inside,
 * `encrypted` is whatever came, byte for byte: here what came from this form goes back as it was and what came from
 * Anthropic's own is packed; `unpacked` is the way to Anthropic's own.
 */
const BASE64 = /^[A-Za-z0-9+/_-]{16,}={0,2}$/;

/** The value of `redactedContent`. */
export function toRedactedContent(encrypted: string): string {
  return inner(encrypted) === undefined ? Buffer.from(encrypted, 'utf8').toString('base64') : encrypted;
}

/** The text that Anthropic gave, whichever form told it. */
export function unpacked(encrypted: string): string {
  return inner(encrypted) ?? encrypted;
}

/** The packed text; undefined when there is none, since encrypted bytes that read as base64 throughout do not happen. */
function inner(encrypted: string): string | undefined {
  if (!BASE64.test(encrypted)) return undefined;
  const bytes = Buffer.from(encrypted, 'base64');
  const text = bytes.toString('latin1');
  return BASE64.test(text) && bytes.toString('base64') === encrypted ? text : undefined;
}

/** The summary of a compacted conversation as a text in its `compaction` item, which clients send back unchanged; not encrypted. */

/** Vendors' encrypted content cannot begin like this: it is base64. */
const PREFIX = 'summary-1:';

export function packSummary(summary: string): string {
  return PREFIX + Buffer.from(summary).toString('base64');
}

/** The summary in an item of a conversation. Undefined for anything but a compaction of this gateway. */
export function summaryOf(item: object): string | undefined {
  const { type, encrypted_content: content } = item as { type?: unknown; encrypted_content?: unknown };
  if (type !== 'compaction' || typeof content !== 'string' || !content.startsWith(PREFIX)) return undefined;
  return Buffer.from(content.slice(PREFIX.length), 'base64').toString();
}

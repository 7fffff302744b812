/**
 * Ids of tool calls as this form takes them: letters, digits, `_` and `-`, and no id twice (bug 28). The rewriting is
 * one-to-one and depends on nothing behind the call, so the same history always gets the same ids and a cached prefix
 * stays one.
 */
const VALID = /^[a-zA-Z0-9_-]+$/;
const PREFIX = 'enc_';

export class ToolIds {
  /** How many calls had the id so far. */
  private readonly calls = new Map<string, number>();

  /** The id of the next call in the history. An id that stands for a second call gets another name. */
  call(id: string): string {
    const count = (this.calls.get(id) ?? 0) + 1;
    this.calls.set(id, count);
    return encodeId(id, count);
  }

  /** The id of a result: that of the latest call with this id. */
  result(id: string): string {
    return encodeId(id, this.calls.get(id) ?? 1);
  }
}

/** Ids that begin like a rewritten one are rewritten too, so no two ids can meet. */
function encodeId(id: string, count: number): string {
  if (count === 1 && VALID.test(id) && !id.startsWith(PREFIX)) return id;
  const text = count === 1 ? id : `${id}\u0000${count}`;
  return PREFIX + Buffer.from(text, 'utf8').toString('base64url');
}

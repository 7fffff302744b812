/** The text of a request whose tokens are an upper bound of what its model reads. */
import { isFields } from '../../formats/conversation/fields.ts';

const IMAGES: ReadonlySet<unknown> = new Set(['image', 'image_url', 'input_image']);
/** Where pictures may stand; anywhere else such an object is text for the model. */
const WITH_IMAGES: readonly string[] = ['messages', 'input'];

/**
 * Every text and every name of a member, one a line: names of members stand for the borders of messages, and what an upstream
 * makes of a tool's schema is shorter than it. Pictures are left out, which have tokens of their own.
 */
export function requestText(body: Readonly<Record<string, unknown>>): string {
  const lines: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    lines.push(name);
    gather(value, WITH_IMAGES.includes(name), lines);
  }
  return lines.join('\n');
}

/** Nesting is bounded where requests are read. */
function gather(value: unknown, images: boolean, lines: string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) gather(item, images, lines);
  } else if (isFields(value)) {
    if (images && IMAGES.has(value['type'])) return;
    for (const [name, member] of Object.entries(value)) {
      lines.push(name);
      gather(member, images, lines);
    }
  } else {
    lines.push(String(value));
  }
}

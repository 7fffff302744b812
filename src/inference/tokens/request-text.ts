/** The text of a request whose token count is an upper bound of what its model reads. */
import { isFields } from '../../formats/conversation/fields.ts';

/**
 * All texts and member names, one per line. Member names account for message separators, and an upstream's rendering of
 * a tool schema is shorter than the schema.
 * @param images parts that are left out, because they have a token rate of their own
 */
export function requestText(
  body: Readonly<Record<string, unknown>>,
  images: ReadonlySet<unknown> = new Set<unknown>(),
): string {
  const lines: string[] = [];
  gather(body, images, lines);
  return lines.join('\n');
}

/** The nesting depth is limited when requests are parsed. */
function gather(value: unknown, images: ReadonlySet<unknown>, lines: string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) gather(item, images, lines);
  } else if (isFields(value)) {
    if (images.has(value)) return;
    for (const [name, member] of Object.entries(value)) {
      lines.push(name);
      gather(member, images, lines);
    }
  } else {
    lines.push(String(value));
  }
}

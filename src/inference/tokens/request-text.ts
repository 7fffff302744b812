/** The text of a request whose token count is an upper bound of what its model reads. */
import { isFields } from '../../formats/conversation/fields.ts';

const IMAGES: ReadonlySet<unknown> = new Set(['image', 'image_url', 'input_image']);
/** Members that may contain images; elsewhere such an object is text for the model. */
const WITH_IMAGES: readonly string[] = ['messages', 'input'];

/**
 * All texts and member names, one per line. Member names account for message separators, and an upstream's rendering of
 * a tool schema is shorter than the schema. Images are left out because they have a token rate of their own.
 */
export function requestText(body: Readonly<Record<string, unknown>>): string {
  const lines: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    lines.push(name);
    gather(value, WITH_IMAGES.includes(name), lines);
  }
  return lines.join('\n');
}

/** The nesting depth is limited when requests are parsed. */
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

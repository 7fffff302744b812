/** The text of an event stream as events. */
import type { StreamEvent } from './formats/dialogue.ts';

/** Comments are left out, and so is an event that the stream ended within. */
export function eventsOf(text: string): StreamEvent[] {
  return text
    .replaceAll('\r\n', '\n')
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => {
      const lines = block.split('\n');
      const of = (field: string) =>
        lines
          .filter((line) => line.startsWith(`${field}:`))
          .map((line) => line.slice(field.length + 1).replace(/^ /, ''));
      const data = of('data');
      return data.length === 0 ? [] : [{ name: of('event')[0], data: data.join('\n') }];
    });
}

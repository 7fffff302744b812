/** Documents of text, for formats that have none: they become ordinary content. */
import type { FilePart, Part } from './conversation.ts';

/** The parts of the document, preceded by its title, where it is from and its context; undefined for other files. */
export function plainDocument({ source, filename, address, context }: FilePart): Part[] | undefined {
  if (source.kind !== 'text' && source.kind !== 'parts') return undefined;
  const content: Part[] = source.kind === 'text' ? [{ type: 'text', text: source.text }] : source.parts;
  return [
    ...[filename, address, context].flatMap((text) => (text ? [{ type: 'text', text } as const] : [])),
    ...content,
  ];
}

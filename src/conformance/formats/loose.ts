/** Reads JSON of unknown shape: a value that is missing or has another type reads as empty. */

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** The text of content that is a string or a list of parts. */
export function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map((part) => text(fields(part)['text']))
    .join('');
}

/** The data of a `data:` URL. */
export function dataOf(url: string): string {
  return /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1] ?? '';
}

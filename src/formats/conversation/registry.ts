/**
 * The formats that exist. Nothing in `conversation/` knows one of them: each declares its id and its dialect here by
 * augmentation (`declare module`), and `formats/index.ts` registers the list when it is loaded.
 */

/** Provider quirks as data. Each format declares and reads the member of its id; the keys are the ids of all formats. */
// biome-ignore lint/suspicious/noEmptyInterface: the formats add its members
export interface Dialect {}

export type FormatId = keyof Dialect;

let known: ReadonlySet<string> | undefined;

export function registerFormats(ids: readonly FormatId[]): void {
  known = new Set(ids);
}

export function isFormatId(text: unknown): text is FormatId {
  if (known === undefined) throw new Error('formats/index.ts has not been loaded');
  return known.has(text as string);
}

/**
 * The formats that exist. Nothing in `conversation/` knows one of them: each declares its id and its dialect here by
 * augmentation (`declare module`), and `formats/index.ts` registers the list when it is loaded.
 */

/** Provider quirks as data. Each format declares and reads the member of its id; the keys are the ids of all formats. */
// biome-ignore lint/suspicious/noEmptyInterface: the formats add its members
export interface Dialect {}

export type FormatId = keyof Dialect;

let answering: ReadonlySet<string> | undefined;
let known: ReadonlySet<string> | undefined;

/** @param answeringIds the formats whose blocks only answers hold; @param ids all formats */
export function registerFormats(answeringIds: readonly FormatId[], ids: readonly FormatId[]): void {
  answering = new Set(answeringIds);
  known = new Set(ids);
}

export function isFormatId(text: unknown): text is FormatId {
  return loaded(known).has(text as string);
}

/**
 * Formats whose blocks are written by services alone: they reach a history only through an earlier answer, so they are
 * left out when the request goes to another format.
 */
export function isOfAnswers(id: FormatId): boolean {
  return loaded(answering).has(id);
}

function loaded(ids: ReadonlySet<string> | undefined): ReadonlySet<string> {
  if (ids === undefined) throw new Error('formats/index.ts has not been loaded');
  return ids;
}

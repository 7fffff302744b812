/** What a member of the yaml file means, and sections of such members. */

export interface Meaning {
  meaning: string;
  /** As the yaml file would spell it; '' for none. */
  fallback: string;
  /** Path of a member that has the same members, which are described there. */
  like?: string;
}

export type Row = readonly [meaning: string, fallback?: string | number | boolean];

/** A section with its members. */
export function section(path: string, meaning: string, members: Record<string, Row>): Record<string, Meaning> {
  const rows = Object.entries(members).map(([name, [text, fallback = '']]) => [
    `${path}.${name}`,
    { meaning: text, fallback: String(fallback) },
  ]);
  return { [path]: { meaning, fallback: '' }, ...Object.fromEntries(rows) };
}

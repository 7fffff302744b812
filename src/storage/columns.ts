/**
 * Statements from a table of columns, so that no column or parameter is counted by hand. Each store describes its rows
 * once (`Columns`); the compiler asks for the column of every member.
 */
import type { Queryable } from './database.ts';

/** A name, or a name with the type of its parameter and the expression that reads it. */
type Column = string | { readonly name: string; readonly type?: string; readonly read?: string };

/** The column of each member of `T`. */
export type Columns<T> = { readonly [M in keyof T]-?: Column };

type AnyColumns = Readonly<Record<string, Column>>;
/** A row with at least the members that `C` has columns for. */
type RowOf<C> = { readonly [M in keyof C]: unknown };

const nameOf = (column: Column) => (typeof column === 'string' ? column : column.name);

/** `w.slug, w.created_at as "createdAt"` */
export function selectList(columns: AnyColumns, alias: string): string {
  return Object.entries(columns)
    .map(([member, column]) => {
      const name = `${alias}.${nameOf(column)}`;
      const read = typeof column === 'object' && column.read !== undefined ? `${name}::${column.read}` : name;
      return read === `${alias}.${member}` ? read : `${read} as "${member}"`;
    })
    .join(', ');
}

/** Those of `columns` that are named. */
export function pick<C extends AnyColumns, const M extends keyof C>(columns: C, members: readonly M[]): Pick<C, M> {
  return Object.fromEntries(members.map((member) => [member, columns[member]])) as Pick<C, M>;
}

/** For `on conflict do update`: `slug = excluded.slug, ...`. */
export function excludedList(columns: AnyColumns): string {
  return Object.values(columns)
    .map((column) => `${nameOf(column)} = excluded.${nameOf(column)}`)
    .join(', ');
}

/** @param rest follows the values, such as `on conflict (id) do nothing returning id` */
export function insertRow<Result, C extends AnyColumns = AnyColumns>(
  db: Queryable,
  table: string,
  columns: C,
  row: RowOf<C>,
  rest = '',
): Promise<Result[]> {
  const values = new Values();
  const parameters = Object.entries(columns).map(([member, column]) => values.add(column, row[member]));
  const names = Object.values(columns).map(nameOf).join(', ');
  return db.query<Result>(
    `insert into ${table} (${names}) values (${parameters.join(', ')}) ${rest}`.trimEnd(),
    values.list,
  );
}

/**
 * @param key columns and values that identify the row
 * @param more further assignments, such as `version = version + 1`
 */
// biome-ignore lint/complexity/useMaxParams: the parts of an UPDATE statement, in its order.
export async function updateRow<C extends AnyColumns>(
  db: Queryable,
  table: string,
  columns: C,
  row: RowOf<C>,
  key: Readonly<Record<string, unknown>>,
  more?: string,
): Promise<void> {
  const values = new Values();
  const set = Object.entries(columns).map(
    ([member, column]) => `${nameOf(column)} = ${values.add(column, row[member])}`,
  );
  if (more !== undefined) set.push(more);
  const where = Object.entries(key).map(([name, value]) => `${name} = ${values.add(name, value)}`);
  await db.query(`update ${table} set ${set.join(', ')} where ${where.join(' and ')}`, values.list);
}

class Values {
  readonly list: unknown[] = [];

  /** Adds a parameter; objects and lists for a column of type jsonb become text. */
  add(column: Column, value: unknown): string {
    const type = typeof column === 'object' ? column.type : undefined;
    this.list.push(type === 'jsonb' && value !== null ? JSON.stringify(value) : value);
    return `$${this.list.length}${type === undefined ? '' : `::${type}`}`;
  }
}

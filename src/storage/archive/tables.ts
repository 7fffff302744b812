/** The tables of an installation as backups see them. Table names come from the catalog and are quoted all the same. */
import type pg from 'pg';
import type { ArchiveTable } from './archive.ts';

/** Maintained by `migrate`, and stored in the head of an archive. */
const MIGRATIONS = 'migrations';

interface TableRow {
  table: string;
  columns: string[];
  partitions: { name: string; bounds: string }[] | null;
}

/**
 * Every table of ours with the columns that hold data, by name. Partitions belong to their table; what is not logged ahead
 * may be empty at any time, and is in no backup.
 */
export async function tablesOf(client: pg.ClientBase): Promise<ArchiveTable[]> {
  const { rows } = await client.query<TableRow>(
    `select c.relname as table,
       (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
       (select json_agg(json_build_object('name', p.relname, 'bounds', pg_get_expr(p.relpartbound, p.oid)) order by p.relname)
         from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid) as partitions
     from pg_class c
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relpersistence = 'p'
       and c.relname <> $1
     order by c.relname collate "C"`,
    [MIGRATIONS],
  );
  return rows.map(({ table, columns, partitions }) => ({ table, columns, ...(partitions && { partitions }) }));
}

export async function appliedMigrations(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`select name from ${MIGRATIONS} order by name`);
  return rows.map(({ name }) => name);
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function columnList({ columns }: Pick<ArchiveTable, 'columns'>): string {
  return columns.map(quoted).join(', ');
}

/**
 * The file of a backup: gzip around lines. The first line is the head; then for each table a line that names it and its
 * columns, its rows as PostgreSQL's COPY writes them (one a line, since it escapes line feeds), and the line `\.`; the
 * last line is the foot with the count of all rows. A file without its foot was cut off, and nothing of it is restored.
 */
export const ARCHIVE_FORMAT = 'gatehouse-backup-1';

export interface ArchiveHead {
  format: typeof ARCHIVE_FORMAT;
  /** Version of the gateway that wrote it, for people. */
  version: string;
  /** ISO 8601. */
  taken_at: string;
  /** Names of the migrations that the schema had; a newer version brings the data to its own. */
  migrations: string[];
}

export interface ArchiveTable {
  table: string;
  columns: string[];
  /** Of a partitioned table; `bounds` as in `for values from ... to ...`. */
  partitions?: { name: string; bounds: string }[];
}

export interface ArchiveFoot {
  end: true;
  rows: number;
}

/** COPY escapes every backslash, so no row can be this. */
export const TABLE_END = '\\.';

/** The SQL of batches with input files. */
import { type Columns, insertRow, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';
import { TERMINAL_STATES } from '../batch.ts';
import type { InputError } from './line-item.ts';

/** What a batch has besides its own row when its requests come from a file. */
export interface BatchFiles {
  batchId: string;
  inputFileId: string;
  outputFileId: string | null;
  errorFileId: string | null;
  /** How long the files with the results are kept. */
  outputSeconds: number;
  /** When the results were in their files; null: not yet. */
  writtenAt: Date | null;
  errors: readonly InputError[] | null;
  metadata: Readonly<Record<string, string>> | null;
}

const COLUMNS: Columns<BatchFiles> = {
  batchId: 'batch_id',
  inputFileId: 'input_file_id',
  outputFileId: 'output_file_id',
  errorFileId: 'error_file_id',
  outputSeconds: 'output_seconds',
  writtenAt: 'written_at',
  errors: { name: 'errors', type: 'jsonb' },
  metadata: { name: 'metadata', type: 'jsonb' },
};

const SELECT_FILES = `select ${selectList(COLUMNS, 'batch_files')} from batch_files`;

export async function insertBatchFiles(tx: Queryable, files: BatchFiles): Promise<void> {
  await insertRow(tx, 'batch_files', COLUMNS, files);
}

/** By the id of the batch; batches without an input file are missing. */
export async function findBatchFiles(db: Queryable, batchIds: readonly string[]): Promise<Map<string, BatchFiles>> {
  if (batchIds.length === 0) return new Map();
  const rows = await db.query<BatchFiles>(`${SELECT_FILES} where batch_id = any($1)`, [batchIds]);
  return new Map(rows.map((row) => [row.batchId, row]));
}

/** Undefined if the results are in their files already, or the batch is gone. Keeps the row for the transaction. */
export async function lockUnwritten(tx: Queryable, batchId: string): Promise<BatchFiles | undefined> {
  const sql = `${SELECT_FILES} where batch_id = $1 and written_at is null for update`;
  const [row] = await tx.query<BatchFiles>(sql, [batchId]);
  return row;
}

type Written = Pick<BatchFiles, 'batchId' | 'outputFileId' | 'errorFileId'> & { writtenAt: Date };

export async function markWritten(
  tx: Queryable,
  { batchId, outputFileId, errorFileId, writtenAt }: Written,
): Promise<void> {
  await tx.query(
    'update batch_files set output_file_id = $2, error_file_id = $3, written_at = $4 where batch_id = $1',
    [batchId, outputFileId, errorFileId, writtenAt],
  );
}

/** The input file was refused: there will be no results. */
export async function markRefused(
  tx: Queryable,
  batchId: string,
  errors: readonly InputError[],
  at: Date,
): Promise<void> {
  const sql = 'update batch_files set errors = $2::jsonb, written_at = $3 where batch_id = $1';
  await tx.query(sql, [batchId, JSON.stringify(errors), at]);
}

/** Batches whose input file is not read although no process has tried since `before`. They count as seen `at`. */
export async function unreadBatches(db: Queryable, before: Date, at: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update batches set seen_at = $2 where seen_at < $1 and id in (select batch_id from batch_intakes) returning id`,
    [before, at],
  );
  return rows.map(({ id }) => id);
}

/** Final batches whose results are not in their files although no process has tried since `before`; seen `at`. */
export async function unwrittenBatches(db: Queryable, before: Date, at: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update batches set seen_at = $2 where seen_at < $1 and finalized_at < $1 and state = any($3)
      and id in (select batch_id from batch_files where written_at is null) returning id`,
    [before, at, TERMINAL_STATES],
  );
  return rows.map(({ id }) => id);
}

/** The background jobs of batches with input files. */
import type { Job, JobKind, Jobs } from '../../jobs/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { findBatchFiles, unreadBatches, unwrittenBatches } from './files.sql.ts';
import { type ReadParts, readInput } from './read-input.ts';
import { type WriteParts, writeFiles } from './write-files.ts';

/** Longer than an input file of the largest size takes. */
const LONGEST_SECONDS = 1_800;
const FILES_AT_ONCE = 2;
const FORGOTTEN_MS = 600_000;

interface FileJob {
  id?: string;
}

export interface FileJobs {
  kinds: readonly JobKind<FileJob>[];
  /** Starts to read the input file when `tx` commits. */
  startReading(tx: Queryable, id: string): Promise<void>;
  /** Starts to write the results of a final batch to files when `tx` commits, if it is one with files. */
  ended(tx: Queryable, id: string): Promise<void>;
  /** Reads and writes the files of batches whose job was lost. One job too many does no harm. */
  wakeForgotten(): Promise<void>;
}

/** @param announce says that the items of a batch may begin when `tx` commits */
export function fileJobs(
  parts: ReadParts & WriteParts,
  jobs: Pick<Jobs, 'send'>,
  announce: (tx: Queryable, id: string) => Promise<void>,
): FileJobs {
  const common = { runs: 'many', concurrency: FILES_AT_ONCE, expireSeconds: LONGEST_SECONDS, pollSeconds: 1 } as const;
  const read: JobKind<FileJob> = {
    ...common,
    name: 'batches.read-file',
    async run({ data: { id }, attempt, signal }: Job<FileJob>) {
      if (id !== undefined) await readInput(parts, id, { signal, attempt, announce });
    },
  };
  const write: JobKind<FileJob> = {
    ...common,
    name: 'batches.write-files',
    async run({ data: { id }, signal }: Job<FileJob>) {
      if (id !== undefined) await writeFiles(parts, id, signal);
    },
  };
  return {
    kinds: [read, write],
    startReading: (tx, id) => jobs.send(read, { id }, { tx }),
    async ended(tx, id) {
      if ((await findBatchFiles(tx, [id])).has(id)) await jobs.send(write, { id }, { tx });
    },
    async wakeForgotten() {
      const now = parts.clock.now();
      const before = new Date(now - FORGOTTEN_MS);
      for (const id of await unreadBatches(parts.database, before, new Date(now))) await jobs.send(read, { id });
      for (const id of await unwrittenBatches(parts.database, before, new Date(now))) await jobs.send(write, { id });
    },
  };
}

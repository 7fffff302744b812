/** Adds files to vector stores: their entries, and a job for each (`add-job.ts`). */
import { GatewayError, invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { FileContents } from '../files/index.ts';
import type { Jobs } from '../jobs/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { AddFileJob } from './add-job.ts';
import { AUTO_CHUNKING, type Chunking } from './chunking.ts';
import * as entries from './entries.sql.ts';
import type { Attributes } from './filters.ts';
import type { ChunkingStrategy } from './schema.ts';

/** Of a store. */
const MOST_FILES = 2_000;

interface FileToAdd {
  /** As on the wire. */
  file_id: string;
  attributes?: Attributes | null;
  chunking_strategy?: ChunkingStrategy;
}

interface Target {
  storeId: string;
  batchId: string | null;
  workspaceId: string;
  keyHash: string;
  now: Date;
}

interface AddParts {
  files: Pick<FileContents, 'find'>;
  jobs: Pick<Jobs, 'send'>;
  addFile: AddFileJob;
}

/**
 * Within the transaction that holds the store. The job of each file begins when it commits.
 * @param pathOf the field of a file in the request
 * @throws GatewayError 400 beyond the limit of the store, 404 for a file that is not in the workspace
 */
export async function addFiles(
  tx: Queryable,
  { files, jobs, addFile }: AddParts,
  target: Target,
  added: readonly FileToAdd[],
  pathOf: (index: number) => string,
): Promise<entries.Entry[]> {
  const found = await files.find(
    target.workspaceId,
    added.map((each) => each.file_id),
  );
  const unique = new Map<string, { file: FileToAdd; chunking: Chunking }>();
  added.forEach((file, index) => {
    const id = found.get(file.file_id)?.id;
    const path = pathOf(index);
    if (id === undefined) {
      throw new GatewayError('not_found', `${path}: the workspace has no file with the id ${file.file_id}`, { path });
    }
    const [at = ''] = /^files\[\d+\]\./.exec(path) ?? [];
    unique.set(id, { file, chunking: chunkingOf(file.chunking_strategy, `${at}chunking_strategy`) });
  });
  const { workspaceId: _, now, ...place } = target;
  // Lists are in the order of the ids, and those of one millisecond are in none.
  const ids = Array.from(unique, () => uuidv7(now.getTime())).sort();
  const made: entries.Entry[] = [];
  for (const [fileId, { file, chunking }] of unique) {
    const entry = {
      ...{ ...place, id: ids[made.length]!, fileId, createdAt: now, attributes: file.attributes ?? {} },
      ...{ chunkTokens: chunking.tokens, overlapTokens: chunking.overlap },
    };
    made.push(await entries.insertEntry(tx, entry));
    await jobs.send(addFile, { id: entry.id }, { tx });
  }
  if ((await entries.countEntries(tx, target.storeId)) > MOST_FILES) {
    throw new GatewayError('invalid_request', `a vector store has at most ${MOST_FILES} files`);
  }
  return made;
}

/** @param path of the strategy, for errors @throws GatewayError 400 */
export function chunkingOf(strategy: ChunkingStrategy | undefined, path = 'chunking_strategy'): Chunking {
  if (strategy === undefined || strategy.type === 'auto') return AUTO_CHUNKING;
  const { max_chunk_size_tokens: tokens, chunk_overlap_tokens: overlap } = strategy.static;
  if (overlap * 2 > tokens) {
    throw invalidField(`${path}.static.chunk_overlap_tokens`, 'must be at most half of max_chunk_size_tokens');
  }
  return { tokens, overlap };
}

/** Files as the requests of their workspace use them: looked up by the ids that clients know, and read. */
import path from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Blobs } from '../blobs/index.ts';
import { OWN_FILE_PREFIX } from '../formats/conversation/file-words.ts';
import type { Database } from '../storage/database.ts';
import { storedId } from './shape.ts';
import * as store from './store.ts';

/** A file that a request names. Its content never changes. */
export interface UsableFile {
  /** UUID. */
  readonly id: string;
  /** Without its folders. */
  readonly filename: string;
  /** Detected from the content. */
  readonly mimeType: string;
  readonly bytes: number;
  readonly blobId: string;
}

export interface FileContents {
  /** Whether the text is an id of this gateway's files, existing or not; false for ids of vendors. */
  isOwn(id: string): boolean;
  /** The files of the workspace by the given ids; those that do not exist there are left out. */
  find(workspaceId: string, ids: readonly string[]): Promise<ReadonlyMap<string, UsableFile>>;
  /** All of the content. @throws GatewayError 503 while the storage is unreachable */
  read(file: UsableFile, signal?: AbortSignal): Promise<Buffer>;
}

export function createFileContents(parts: {
  database: Database;
  blobs: Pick<Blobs, 'read'>;
  clock: Clock;
}): FileContents {
  const { database, blobs, clock } = parts;
  return {
    isOwn: (id) => id.startsWith(OWN_FILE_PREFIX) || storedId(id) !== undefined,
    async find(workspaceId, ids) {
      const stored = new Set(ids.flatMap((id) => storedId(id) ?? []));
      const files = new Map(
        (await store.findFiles(database, workspaceId, [...stored], new Date(clock.now()))).map((file) => [
          file.id,
          file,
        ]),
      );
      const found = new Map<string, UsableFile>();
      for (const id of ids) {
        const file = files.get(storedId(id) ?? '');
        if (file !== undefined) found.set(id, usable(file));
      }
      return found;
    },
    async read({ blobId, bytes }, signal) {
      const content = Buffer.allocUnsafe(bytes);
      let length = 0;
      for await (const chunk of await blobs.read(blobId)) {
        signal?.throwIfAborted();
        length += chunk.copy(content, length);
      }
      return content.subarray(0, length);
    },
  };
}

function usable({ id, filename, mimeType, bytes, blobId }: store.StoredFile): UsableFile {
  return { id, filename: path.posix.basename(filename), mimeType, bytes, blobId };
}

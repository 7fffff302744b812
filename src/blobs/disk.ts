/** Blobs as files of one folder, spread over subfolders. A file appears under its name only when it is whole. */
import { access, type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from '../storage/unavailable.ts';
import { type BlobBackend, BlobMissing, BlobUnavailable } from './backend.ts';

const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
const READ_BYTES = 256 * 1024;
/** ENOSPC, EDQUOT: full. EROFS, EIO, EACCES, ENOENT and the like: the folder is away. */
const FULL = new Set(['ENOSPC', 'EDQUOT']);

export function diskBackend(folder: string): BlobBackend {
  const fileOf = (key: string) => path.join(folder, key.slice(-2), key);
  return {
    kind: 'disk',
    location: folder,
    async write(key, content) {
      const file = fileOf(key);
      const partial = `${file}.partial`;
      let handle: FileHandle | undefined;
      let source: unknown;
      try {
        await mkdir(path.dirname(file), { recursive: true, mode: PRIVATE_FOLDER });
        handle = await open(partial, 'w', PRIVATE_FILE);
        const chunks = content[Symbol.asyncIterator]();
        for (;;) {
          const next = await chunks.next().catch((error: unknown) => {
            source = error;
            throw error;
          });
          if (next.done) break;
          await handle.write(next.value);
        }
        await handle.sync();
        await handle.close();
        handle = undefined;
        await rename(partial, file);
        await syncFolder(path.dirname(file));
      } catch (error) {
        await handle?.close().catch(() => {});
        await rm(partial, { force: true }).catch(() => {});
        if (error === source || errorCode(error) === undefined) throw error;
        throw new BlobUnavailable(
          FULL.has(errorCode(error)!) ? `no space is left in ${folder}` : `${folder} cannot be written`,
          { cause: error },
        );
      }
    },
    async read(key, range) {
      await access(fileOf(key)).catch((error: unknown) => {
        if (errorCode(error) === 'ENOENT') throw new BlobMissing(key, folder, error);
        throw new BlobUnavailable(`${folder} cannot be read`, { cause: error });
      });
      return contentOf(fileOf(key), range);
    },
    async remove(key) {
      await rm(fileOf(key), { force: true });
      await rm(`${fileOf(key)}.partial`, { force: true });
    },
    async close() {},
  };
}

/** Opens the file when its first byte is wanted: a reader that never begins would leave it open. */
async function* contentOf(file: string, range: { start: number; end: number } | undefined): AsyncGenerator<Buffer> {
  const handle = await open(file, 'r');
  try {
    const bounds = range && { start: range.start, end: range.end - 1 };
    yield* handle.createReadStream({ highWaterMark: READ_BYTES, autoClose: false, ...bounds }) as AsyncIterable<Buffer>;
  } finally {
    await handle.close();
  }
}

/** A rename survives a power cut once its folder is on the disk. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

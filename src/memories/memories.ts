import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { opened, type StoredText, sealerOf } from './sealed.ts';
import * as store from './store.ts';

/** Limits of one folder, and of all folders of a workspace. */
const MAX_FILES = 200;
const MAX_FOLDER_BYTES = 2 * 1024 * 1024;
const MAX_WORKSPACE_BYTES = 256 * 1024 * 1024;
const SESSION_MS = 30 * 24 * 60 * 60 * 1000;

export interface MemoryOwner {
  workspaceId: string;
  kind: 'user' | 'session';
  /** Of the end user or the session, as the client gives it. */
  id: string;
}

/** A limit is reached. The message is for the model. */
export class MemoryFull extends Error {}

/** Paths are absolute, without a final slash. */
export interface MemoryFolder {
  /** In the order of their paths. */
  list(): Promise<{ path: string; bytes: number }[]>;
  read(path: string): Promise<string | undefined>;
  /**
   * Changes one file, with no other change of the workspace at the same time.
   * @param change gets the file's text, undefined if there is none, and what else is in the folder. May throw
   * @throws MemoryFull
   */
  write(path: string, change: (before: string | undefined, paths: readonly string[]) => string): Promise<void>;
  /** A file, or a folder with all that is in it. False if there is nothing at the path. */
  remove(path: string): Promise<boolean>;
  /** The same for renaming. @param check may refuse it: throws */
  move(from: string, to: string, check: (paths: readonly string[]) => void): Promise<boolean>;
}

export class Memories {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #sealing: Sealing;

  constructor({ database, clock, sealing }: { database: Database; clock: Clock; sealing: Sealing }) {
    this.#database = database;
    this.#sealing = sealing;
    this.#clock = clock;
  }

  folderOf({ workspaceId, kind, id }: MemoryOwner): MemoryFolder {
    const owner = { workspaceId, owner: ownerOf(kind, id) };
    const database = this.#database;
    const sealing = this.#sealing;
    const textOf = async (stored: StoredText | undefined) =>
      stored === undefined ? undefined : (await opened(sealing, [stored]))[0];
    const alone = <T>(work: (tx: Queryable) => Promise<T>) =>
      database.transaction(async (tx) => {
        await store.lockWorkspace(tx, workspaceId);
        return work(tx);
      });
    return {
      list: () => store.filesOf(database, owner),
      read: async (path) => textOf(await store.contentOf(database, owner, path)),
      write: async (path, change) => {
        const seal = await sealerOf(sealing);
        await alone(async (tx) => {
          const now = new Date(this.#clock.now());
          await store.removeOldSessions(tx, workspaceId, new Date(now.getTime() - SESSION_MS));
          const files = await store.filesOf(tx, owner);
          const paths = files.map((file) => file.path);
          const before = await store.contentOf(tx, owner, path);
          const content = change(await textOf(before), paths);
          const bytes = Buffer.byteLength(content);
          checkRoom(files, path, bytes, await store.bytesOfWorkspace(tx, workspaceId));
          const rowId = before?.id ?? randomUUID();
          const sealed = seal(rowId, content);
          await store.writeFile(tx, owner, { id: rowId, path, bytes, sealed, isSession: kind === 'session', now });
        });
      },
      remove: (path) => alone(async (tx) => (await store.removeAt(tx, owner, path)) > 0),
      move: (from, to, check) =>
        alone(async (tx) => {
          check((await store.filesOf(tx, owner)).map((file) => file.path));
          return (await store.moveTo(tx, owner, from, to)) > 0;
        }),
    };
  }
}

/** The key under which the folder of an end user or a session is stored. */
export function ownerOf(kind: MemoryOwner['kind'], id: string): Buffer {
  return createHash('sha256').update(`${kind}\0${id}`).digest();
}

/** @throws MemoryFull */
function checkRoom(
  files: readonly { path: string; bytes: number }[],
  path: string,
  bytes: number,
  ofWorkspace: number,
): void {
  const before = files.find((file) => file.path === path)?.bytes ?? 0;
  const all = files.reduce((sum, file) => sum + file.bytes, 0);
  if (before === 0 && !files.some((file) => file.path === path) && files.length >= MAX_FILES) {
    throw new MemoryFull(`the memory already has ${MAX_FILES} files; delete some first`);
  }
  if (bytes <= before) return;
  if (all - before + bytes > MAX_FOLDER_BYTES) {
    throw new MemoryFull(`the memory may have at most ${MAX_FOLDER_BYTES} bytes in all; delete some files first`);
  }
  if (ofWorkspace - before + bytes > MAX_WORKSPACE_BYTES) throw new MemoryFull('the memory of the workspace is full');
}

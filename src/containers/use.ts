/** One use of a container, by a request or an operation. */
import type { Log } from '../base/log.ts';
import type { Sandbox } from '../sandboxes/index.ts';
import type { Awake } from './awake.ts';
import { type ContainerFile, type CopiedFile, fileIdOf, type StoredContainer } from './container.ts';
import { type ListedFile, listedFiles } from './listing.ts';

/** Files that are shown of a container. */
const MOST_FILES = 1_000;

/** A file of the workspace, for `copyIn`. */
export interface CopyableFile {
  id: string;
  /** Where it goes, below the folder for files. */
  path: string;
  read(): Promise<Buffer>;
}

interface UseParts {
  log: Log;
  /** The files after the last use. */
  files: readonly ContainerFile[];
  /** Ends the use. Never rejects. */
  end(use: ContainerUse): Promise<void>;
}

export class ContainerUse {
  readonly container: StoredContainer;
  readonly sandbox: Sandbox;
  readonly #parts: UseParts;
  /** Size and time of each file at the last look, by path. */
  #seen: Map<string, string>;
  #copied: Readonly<Record<string, CopiedFile>>;
  #working: Promise<void> = Promise.resolve();
  #ending: Promise<void> | undefined;
  /** How long its sandbox waits for the next use. */
  sleepAfterMs: number;
  /** Commands may have changed its files. */
  isChanged = false;
  /** Another use may have the container. */
  isLost = false;

  constructor(
    container: StoredContainer,
    { sandbox, sleepAfterMs }: Pick<Awake, 'sandbox' | 'sleepAfterMs'>,
    parts: UseParts,
  ) {
    this.container = container;
    this.sandbox = sandbox;
    this.sleepAfterMs = sleepAfterMs;
    this.#parts = parts;
    this.#copied = container.copied;
    this.#seen = new Map(parts.files.map((file) => [file.path, stateOf(file)]));
  }

  /** The name of the container on the wire. */
  get name(): string {
    return this.container.name;
  }

  get copied(): Readonly<Record<string, CopiedFile>> {
    return this.#copied;
  }

  /** Writes the files that were not copied before. What code has made of earlier copies stays. */
  copyIn(files: readonly CopyableFile[]): Promise<void> {
    return this.inOrder(() => this.#copy(files));
  }

  async #copy(files: readonly CopyableFile[]): Promise<void> {
    const missing = files.filter(({ id }) => this.#copied[id] === undefined);
    if (missing.length === 0) return;
    this.isChanged = true;
    for (const { path, read } of missing) await this.sandbox.writeFile(path, await read());
    const written = new Map((await listedFiles(this.sandbox, MOST_FILES)).map((file) => [file.path, file]));
    const added = missing.map(({ id, path }): [string, CopiedFile] => {
      const second = (written.get(path)?.changedAt.getTime() ?? 0) / 1000;
      return [id, { path, second }];
    });
    this.#copied = { ...this.#copied, ...Object.fromEntries(added) };
  }

  /** Runs one piece of work after the other. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#working.then(work);
    this.#working = done.then(
      () => {},
      () => {},
    );
    return done;
  }

  /** Files that were made or changed since the last look. Empty also if they cannot be listed. */
  async made(): Promise<ContainerFile[]> {
    try {
      const files = await this.files();
      const before = this.#seen;
      this.#seen = new Map(files.map((file) => [file.path, stateOf(file)]));
      return files.filter((file) => before.get(file.path) !== stateOf(file));
    } catch (error) {
      this.#parts.log.warn('the files of a container cannot be listed', { container: this.container.id, error });
      return [];
    }
  }

  /** Without unchanged copies. At most `MOST_FILES`. */
  async files(): Promise<ContainerFile[]> {
    const copies = new Map(Object.values(this.#copied).map(({ path, second }) => [path, second]));
    const listed = await listedFiles(this.sandbox, MOST_FILES);
    return listed
      .filter(({ path, changedAt }) => copies.get(path) !== changedAt.getTime() / 1000)
      .map((file) => ({ ...file, id: fileIdOf(this.container.id, file.path) }));
  }

  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** Stores what it has changed, and gives the container back. */
  end(): Promise<void> {
    this.#ending ??= this.#parts.end(this);
    return this.#ending;
  }

  /** Another use may have the container: nothing of this one is stored, and its commands end. */
  lose(): void {
    this.isLost = true;
    this.#parts.log.warn('another use may have taken a container over', { container: this.container.id });
    void this.end();
  }
}

function stateOf({ bytes, changedAt }: Pick<ListedFile, 'bytes' | 'changedAt'>): string {
  return `${bytes} ${changedAt.getTime()}`;
}

/**
 * Where workspaces are. Each sandbox has a folder with its record, its owner while it runs, and three folders that belong to the
 * sandbox's user: `workspace`, `home`, `tmp`. Everything in these was put there by its code, so only programs that follow no links
 * go into them.
 */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { ownerLives, renewOwner, writeOwner } from '../../storage/owner.ts';
import type { SandboxRecord } from '../driver.ts';
import { ETC_FILES } from './system.ts';

const execFileAsync = promisify(execFile);

const OWNER = 'owner';
const RECORD = 'record.json';
const WRITABLE = ['workspace', 'home', 'tmp'] as const;

/**
 * The folder for sandboxes of a gateway. The users of sandboxes cannot enter the data folder of root.
 * @param isRoot whether each sandbox has a user of its own
 */
export function baseFolder(dataDir: string, isRoot: boolean): string {
  if (!isRoot) return path.join(path.resolve(dataDir), 'sandboxes');
  const hash = createHash('sha256').update(path.resolve(dataDir)).digest('hex').slice(0, 16);
  return path.join('/var/lib/gatehouse-sandboxes', hash);
}

export interface SandboxFolder {
  folder: string;
  workspace: string;
  home: string;
  temporary: string;
  etc: string;
}

export class Folders {
  readonly base: string;
  readonly #clock: Clock;

  constructor(base: string, clock: Clock) {
    this.base = base;
    this.#clock = clock;
  }

  of(id: string): SandboxFolder {
    const folder = path.join(this.base, id);
    const inside = (name: string) => path.join(folder, name);
    return {
      folder,
      workspace: inside('workspace'),
      home: inside('home'),
      temporary: inside('tmp'),
      etc: inside('etc'),
    };
  }

  /**
   * Makes the folders, and this process the owner.
   * @param uid the user of the sandbox; null: the gateway's
   * @returns false if another process runs the sandbox
   */
  async take(id: string, owner: string, uid: number | null): Promise<boolean> {
    const { folder } = this.of(id);
    // Others may pass through to the folders that they have rights for.
    const mode = uid === null ? 0o700 : 0o711;
    mkdirSync(this.base, { recursive: true, mode });
    mkdirSync(folder, { recursive: true, mode });
    // Before the claim, so that `list` finds whatever has an owner.
    const record = path.join(folder, RECORD);
    const isNew = !existsSync(record);
    if (isNew) writeRecord(record, owner);
    if (!this.#claim(id)) return false;
    try {
      if (!isNew) writeRecord(record, owner);
      await this.#furnish(id, uid);
      return true;
    } catch (error) {
      rmSync(path.join(folder, OWNER), { force: true });
      throw error;
    }
  }

  async #furnish(id: string, uid: number | null): Promise<void> {
    const { folder, etc, temporary } = this.of(id);
    mkdirSync(etc, { recursive: true, mode: 0o755 });
    for (const [name, text] of Object.entries(ETC_FILES)) writeFileSync(path.join(etc, name), text, { mode: 0o644 });
    await removeTree(temporary);
    for (const name of WRITABLE) await giveFolder(path.join(folder, name), uid);
  }

  /** For the sandbox to read. */
  writeEtc(id: string, name: string, text: string): string {
    const file = path.join(this.of(id).etc, name);
    writeFileSync(file, text, { mode: 0o644 });
    return file;
  }

  /** What owners must do every `RENEW_MS`. */
  renew(id: string): void {
    renewOwner(path.join(this.of(id).folder, OWNER), this.#clock);
  }

  /** Gives a sandbox back, after its last process has ended. Workspace and home stay. */
  async release(id: string): Promise<void> {
    const { folder, temporary } = this.of(id);
    // Without its record, a gateway was killed while it removed the sandbox.
    await removeTree(existsSync(path.join(folder, RECORD)) ? temporary : folder);
    rmSync(path.join(folder, OWNER), { force: true });
  }

  list(): SandboxRecord[] {
    return this.ids().flatMap((id) => {
      const owner = ownerOf(path.join(this.of(id).folder, RECORD));
      return owner === undefined ? [] : [{ id, owner, running: this.isOwned(id) }];
    });
  }

  /** Whether its owner has died. */
  isAbandoned(id: string): boolean {
    return existsSync(path.join(this.of(id).folder, OWNER)) && !this.isOwned(id);
  }

  isOwned(id: string): boolean {
    return ownerLives(path.join(this.of(id).folder, OWNER), this.#clock);
  }

  /** Removes everything of a sandbox without an owner. @returns false if it has one */
  async remove(id: string): Promise<boolean> {
    const { folder } = this.of(id);
    if (!existsSync(folder)) return true;
    if (!this.#claim(id)) return false;
    rmSync(path.join(folder, RECORD), { force: true });
    await removeTree(folder);
    return true;
  }

  /** Also of sandboxes that were removed in part. */
  ids(): string[] {
    try {
      return readdirSync(this.base, { withFileTypes: true }).flatMap((each) => (each.isDirectory() ? [each.name] : []));
    } catch {
      return [];
    }
  }

  #claim(id: string): boolean {
    const file = path.join(this.of(id).folder, OWNER);
    if (existsSync(file) && !this.isOwned(id)) this.#disown(file);
    const own = `${file}.${randomUUID()}`;
    writeOwner(own);
    try {
      linkSync(own, file);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    } finally {
      unlinkSync(own);
    }
  }

  /** Of two processes that find the same dead owner, one must not remove the other's claim. */
  #disown(file: string): void {
    const moved = `${file}.${randomUUID()}`;
    try {
      renameSync(file, moved);
    } catch {
      return;
    }
    if (ownerLives(moved, this.#clock)) linkSync(moved, file);
    unlinkSync(moved);
  }
}

function writeRecord(record: string, owner: string): void {
  const next = `${record}.${randomUUID()}`;
  writeFileSync(next, JSON.stringify({ owner }), { mode: 0o600 });
  renameSync(next, record);
}

function ownerOf(record: string): string | undefined {
  try {
    const { owner } = JSON.parse(readFileSync(record, 'utf8')) as { owner?: unknown };
    return typeof owner === 'string' ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Makes a folder of the sandbox's user. An earlier one may have another user, after the range of users changed. */
async function giveFolder(folder: string, uid: number | null): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (uid === null) {
    // Its code may have taken the rights away.
    chmodSync(folder, 0o700);
    return;
  }
  if (lstatSync(folder).uid === uid) return;
  const isNew = readdirSync(folder).length === 0;
  if (isNew) chownSync(folder, uid, uid);
  else await execFileAsync('chown', ['-RhP', `${uid}:${uid}`, '--', folder]);
}

/** Removes a tree that untrusted code has made: of any depth, without following links, even if its folders cannot be entered. */
async function removeTree(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const remove = () => execFileAsync('rm', ['-rf', '--one-file-system', '--', folder]);
  try {
    await remove();
  } catch {
    // Only where the gateway is not root.
    await execFileAsync('find', [
      folder,
      '-type',
      'd',
      '!',
      '-perm',
      '-700',
      '-exec',
      'chmod',
      'u+rwx',
      '{}',
      ';',
    ]).catch(() => {});
    await remove();
  }
}

/** A folder above that other users cannot pass, as far as the bits of its mode say; undefined if there is none. */
export function blockingFolder(file: string): string | undefined {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    if (existsSync(folder) && (statSync(folder).mode & 0o001) === 0) return folder;
    if (folder === path.dirname(folder)) return undefined;
  }
}

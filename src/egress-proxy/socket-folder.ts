/**
 * Where the sockets of sandboxes are: a folder for each sandbox, which is what a sandbox mounts. A socket that comes back after a
 * restart is then in the sandbox, too. The folders of gateways that were killed are removed.
 */
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { ProxyUser } from './settings.ts';

export const SOCKET_NAME = 'egress.sock';
/** The most bytes of a socket's path on Linux, without the final zero. */
const LONGEST_PATH = 107;

/**
 * The folder for sockets of a gateway. The data folder of root cannot be entered by the proxy's user, and the paths of sockets
 * must be short.
 */
export function socketFolderFor(dataFolder: string): string {
  if (process.getuid?.() !== 0) return path.join(path.resolve(dataFolder), 'egress');
  const hash = createHash('sha256').update(path.resolve(dataFolder)).digest('hex').slice(0, 16);
  return path.join('/run/gatehouse-egress', hash);
}

export class SocketFolders {
  readonly #base: string;
  readonly #own: string;
  readonly #user: ProxyUser | null;

  /** @param base for all gateways of this machine that use the same data folder @param user that the proxy runs as */
  constructor(base: string, user: ProxyUser | null) {
    this.#base = path.resolve(base);
    this.#own = path.join(this.#base, `${process.pid}-${startOf(process.pid) ?? 0}`);
    this.#user = user;
  }

  /** Removes what dead processes left, and makes the folder of this one. */
  prepare(): void {
    // Others may pass through to the folders that they have rights for.
    mkdirSync(this.#base, { recursive: true, mode: this.#user === null ? 0o700 : 0o711 });
    for (const name of readdirSync(this.#base)) {
      const [, pid, start] = /^(\d+)-(\d+)$/.exec(name) ?? [];
      if (pid === undefined || startOf(Number(pid)) === Number(start)) continue;
      rmSync(path.join(this.#base, name), { recursive: true, force: true });
    }
    mkdirSync(this.#own, { recursive: true, mode: this.#user === null ? 0o700 : 0o711 });
  }

  /**
   * Makes the folder of a sandbox. New files in it belong to its group, so that the proxy needs no right to give them away.
   * @param gid the group of the sandbox's processes, if they run as another user than the proxy
   * @returns the folder, and the mode of the socket
   */
  make(id: string, gid: number | null): { folder: string; mode: number } {
    const folder = path.join(this.#own, id);
    if (Buffer.byteLength(path.join(folder, SOCKET_NAME)) > LONGEST_PATH) {
      throw new Error(`the path of the socket folder ${this.#base} is too long for a Unix socket`);
    }
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (this.#user === null) return { folder, mode: 0o600 };
    chownSync(folder, this.#user.uid, gid ?? this.#user.gid);
    chmodSync(folder, gid === null ? 0o700 : 0o2710);
    return { folder, mode: gid === null ? 0o600 : 0o660 };
  }

  remove(id: string): void {
    rmSync(path.join(this.#own, id), { recursive: true, force: true });
  }

  removeAll(): void {
    rmSync(this.#own, { recursive: true, force: true });
  }
}

/** When a process started, in ticks of the kernel, so that a process id that is used again is another process. */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The program name is in parentheses and may contain anything.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
  } catch {
    return undefined;
  }
}

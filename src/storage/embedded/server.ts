/** One run of the server: a child of ours in a session of its own, which cannot outlive us. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { type Clock, waitAtMost } from '../../base/clock.ts';
import type { Account } from './account.ts';
import type { Binaries } from './binaries.ts';
import { clusterArgument, explainSpawn } from './cluster.ts';

export interface Server {
  readonly pid: number;
  readonly running: boolean;
  /** Resolves with the end of the server's log when it has ended, for whatever reason. */
  readonly ended: Promise<string>;
  /**
   * Cuts all sessions and ends the server: `clean` with a checkpoint; otherwise at once, which is as safe and leaves a
   * recovery to the next start. Harder means follow when it takes too long.
   */
  stop(clean: boolean): Promise<void>;
}

/** What differs from PostgreSQL's defaults; `postgresql.conf` in the cluster may set anything else. */
const SETTINGS: Readonly<Record<string, string>> = {
  // Trust authentication: the socket, in the cluster's own folder (0700), is the only way in. A relative name is always
  // short enough for a socket address.
  listen_addresses: '',
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  max_connections: '100',
  shared_buffers: '64MB',
  max_wal_size: '512MB',
  // No extra processes for reads of a data set that mostly fits in memory.
  io_method: 'sync',
  max_logical_replication_workers: '0',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Log only the server's own events, never statements: they and the values in their errors may be secret.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_parameter_max_length_on_error: '0',
  log_checkpoints: 'off',
  logging_collector: 'off',
  cluster_name: 'gatehouse',
};

/** Each way of ending the server is given this long before the next: shutdown with a checkpoint, at once, by force. */
const STOP_TIMEOUT_S = 10;

/**
 * The guard: waits on the pipe from us (descriptor 3). A line means that the server has ended; the end of the pipe means
 * that we have, and then it ends the server. One way of ending it is not enough: PostgreSQL 18 may never finish a fast
 * shutdown that comes during a crash recovery.
 */
const GUARD = `cd /
read -r _ <&3 && exit
for signal in INT QUIT KILL; do
  waited=0
  kill -$signal "$1" || exit
  while [ $waited -lt ${STOP_TIMEOUT_S} ]; do
    sleep 1
    kill -0 "$1" || exit
    waited=$((waited + 1))
  done
done`;
/**
 * Starts a guard process, then becomes the server. The guard is a grandchild, so that its own death is no event for the
 * server, and holds nothing of it but its number.
 */
const GUARDED = `guard=$1
shift
(sh -c "$guard" gatehouse-guard $$ >/dev/null 2>&1 &)
exec 3<&-
exec "$@"`;

const LOG_LIMIT_BYTES = 1024 * 1024;
const LOG_TAIL_BYTES = 2048;

export function launch(
  cluster: string,
  binaries: Binaries,
  account: Account | undefined,
  settings: Readonly<Record<string, string>>,
  clock: Clock,
): Server {
  const log = openLog(`${cluster}.log`);
  const args = Object.entries({ ...SETTINGS, ...settings }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(
    '/bin/sh',
    ['-c', GUARDED, 'gatehouse', GUARD, binaries.postgres, '-D', clusterArgument(cluster), ...args],
    {
      ...account,
      cwd: cluster,
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
      // A session of its own: Ctrl-C on the terminal is for us, and we still need the database to drain.
      detached: true,
      stdio: ['ignore', log.descriptor, log.descriptor, 'pipe'],
    },
  );
  const ended = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(explainSpawn(error, account)));
    child.on('exit', () => resolve(log.tail()));
  });
  void ended.then(() => log.close());
  guard(child, account, ended);
  child.unref();

  const running = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    pid: child.pid ?? 0,
    get running() {
      return running();
    },
    ended,
    async stop(clean) {
      child.ref();
      for (const name of [...(clean ? (['SIGINT'] as const) : []), 'SIGQUIT', 'SIGKILL'] as const) {
        if (!running()) return;
        child.kill(name);
        await waitAtMost(clock, STOP_TIMEOUT_S * 1000, ended);
      }
    },
  };
}

/** Keeps exactly one guard for as long as the server runs. */
function guard(child: ChildProcess, account: Account | undefined, ended: Promise<string>): void {
  let over = false;
  let pipe: Duplex | undefined;
  void ended.then(() => {
    over = true;
    pipe?.end('\n');
  });
  const hold = (next: Duplex) => {
    pipe = next;
    next.on('error', () => {});
    // The guard never writes; the pipe ends when the guard has died.
    next.on('close', () => {
      if (over || child.pid === undefined) return;
      const renewed = spawn('/bin/sh', ['-c', GUARD, 'gatehouse-guard', String(child.pid)], {
        ...account,
        detached: true,
        stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      });
      renewed.on('error', () => {});
      renewed.unref();
      if (renewed.pid !== undefined) hold(renewed.stdio[3] as Duplex);
    });
    next.resume();
    (next as Duplex & { unref?(): void }).unref?.();
  };
  if (child.pid !== undefined) hold(child.stdio[3] as Duplex);
}

/** The server writes its log itself, so that nothing is lost when we are killed. Two files of bounded size. */
function openLog(path: string): { descriptor: number; tail(): string; close(): void } {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_LIMIT_BYTES) renameSync(path, `${path}.old`);
  const descriptor = openSync(path, 'a+', 0o600);
  const start = fstatSync(descriptor).size;
  return {
    descriptor,
    tail() {
      const from = Math.max(start, fstatSync(descriptor).size - LOG_TAIL_BYTES);
      const bytes = Buffer.alloc(LOG_TAIL_BYTES);
      return bytes.toString('utf8', 0, readSync(descriptor, bytes, 0, bytes.length, from)).trim();
    },
    close: () => closeSync(descriptor),
  };
}

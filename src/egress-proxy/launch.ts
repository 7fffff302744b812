/** The files that run elsewhere: the proxy's own process, and the first process of a sandbox. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const HEAP_MB = 256;

/**
 * Starts the process without core files, without the gateway's environment, and without the signal that opens Node's inspector. The
 * secrets follow over the channel, which closes with the gateway.
 */
export function launch(entry: string | undefined): ChildProcess {
  const file = entry ?? fileBeside('egress-proxy');
  const flags = ['--disable-sigusr1', `--max-old-space-size=${HEAP_MB}`];
  const child = spawn('/bin/sh', ['-c', 'ulimit -c 0; exec "$0" "$@"', process.execPath, ...flags, file], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Names are resolved in threads; four would let slow names of one sandbox hold up the others.
    env: { UV_THREADPOOL_SIZE: '32' },
    cwd: '/',
  });
  // The gateway may exit without waiting for it.
  child.unref();
  child.channel?.unref();
  return child;
}

/**
 * The first process of a sandbox: `node <file> <socket> <port> <command> [argument...]`. It needs nothing else of the gateway. It
 * listens on this port of 127.0.0.1 and passes connections on to the socket.
 */
export function sandboxInitFile(): string {
  return fileBeside('sandbox-init');
}

function fileBeside(name: string): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`./${name}.${extension}`, import.meta.url));
}

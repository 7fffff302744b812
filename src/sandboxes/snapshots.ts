/**
 * Snapshots of workspace and home: a compressed tar archive, packed and unpacked by commands in the sandbox, so that the gateway
 * never interprets what its code has written.
 */
import { pipeline } from 'node:stream/promises';
import { GatewayError } from '../base/errors.ts';
import type { Blob, Blobs } from '../blobs/index.ts';
import { type Execution, HOME, type Sandbox, WORKSPACE } from './sandbox.ts';

/** Unreadable files are left out. Holes stay holes, so that large empty files are small in the archive. */
const PACK = [
  ...['tar', '-C', '/', '--create', '--file=-', '--use-compress-program=gzip -1', '--sparse', '--one-file-system'],
  ...['--ignore-failed-read', '--warning=none', WORKSPACE.slice(1), HOME.slice(1)],
] as const;
/** Also says that a file has changed while it was read. */
const PACKED_CODES = [0, 1];

/** The two folders stay as they are: on a volume of Kubernetes they belong to root, and may not be changed. */
const ROOTS = ['--no-recursion', '--anchored', ...[WORKSPACE, HOME].map((folder) => `--exclude=${folder.slice(1)}`)];

const UNPACK = `chmod -R u+rwX ${WORKSPACE} ${HOME}
find ${WORKSPACE} ${HOME} -mindepth 1 -delete && exec tar -C / ${ROOTS.join(' ')} --extract --gzip --file=- --preserve-permissions --no-same-owner`;

type Commands = Pick<Sandbox, 'exec'>;

/** @throws GatewayError 413 if it is larger than `mostBytes` */
export async function snapshot(sandbox: Commands, blobs: Blobs, mostBytes: number): Promise<Blob> {
  const execution = await sandbox.exec({ argv: PACK as unknown as [string], outputBytes: mostBytes });
  execution.stdin.end();
  try {
    return await blobs.write(packed(execution, mostBytes));
  } finally {
    execution.signal('SIGKILL');
  }
}

/** Fails at the end if the archive is not complete. */
async function* packed(execution: Execution, mostBytes: number): AsyncGenerator<Buffer> {
  execution.stderr.resume();
  for await (const chunk of execution.stdout) yield chunk as Buffer;
  const { reason, code } = await execution.ended;
  if (reason === 'output') {
    throw new GatewayError('payload_too_large', `The snapshot of the sandbox has more than ${mostBytes} bytes.`);
  }
  if (!PACKED_CODES.includes(code ?? -1)) throw failed('stored', reason);
}

export async function restore(sandbox: Commands, blobs: Blobs, blobId: string): Promise<void> {
  const content = await blobs.read(blobId);
  const execution = await sandbox.exec({ argv: ['sh', '-c', UNPACK] });
  execution.stdout.resume();
  execution.stderr.resume();
  try {
    await pipeline(content, execution.stdin);
  } catch (error) {
    execution.signal('SIGKILL');
    const { reason } = await execution.ended;
    throw (error as NodeJS.ErrnoException).code === 'EPIPE' ? failed('restored', reason) : error;
  }
  const { reason, code } = await execution.ended;
  if (code !== 0) throw failed('restored', reason);
}

function failed(what: string, reason: string): GatewayError {
  if (reason === 'disk') return new GatewayError('payload_too_large', `The snapshot does not fit into the sandbox.`);
  return new GatewayError('server', `The snapshot could not be ${what} (${reason}).`, { status: 503 });
}

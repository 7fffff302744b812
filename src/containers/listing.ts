/** The files in a sandbox, as its own programs list them. */
import { GatewayError, notFound } from '../base/errors.ts';
import { type Execution, run, type Sandbox, WORKSPACE } from '../sandboxes/index.ts';

/** A path has at most 4095 bytes, and numbers precede it. */
const LONGEST_LINE = 4200;
const TIMEOUT_MS = 60_000;

/** Regular files below the folder for files, those with the shortest way to it first. Links are not followed. */
const LIST = `cd "$1" && find . -xdev -mindepth 1 -type f -printf '%d/%s/%T@/%P\\0' | sort -zn | head -zn "$2"`;

export interface ListedFile {
  /** Below the folder for files. */
  path: string;
  bytes: number;
  changedAt: Date;
}

/** At most `most` files. @throws GatewayError 503 if the sandbox does not answer */
export async function listedFiles(sandbox: Pick<Sandbox, 'exec'>, most: number): Promise<ListedFile[]> {
  const { ending, stdout } = await run(sandbox, {
    argv: ['sh', '-c', LIST, 'sh', WORKSPACE, String(most)],
    timeoutMs: TIMEOUT_MS,
    outputBytes: most * LONGEST_LINE,
  });
  if (ending.code !== 0) throw unanswered(ending.reason);
  // Names that are not UTF-8 may become equal; the first one counts.
  const files = new Map<string, ListedFile>();
  for (const line of stdout.toString().split('\0').slice(0, -1)) {
    const file = fileOf(line);
    if (!files.has(file.path)) files.set(file.path, file);
  }
  return [...files.values()];
}

function fileOf(line: string): ListedFile {
  const [depth = '', bytes = '', seconds = ''] = line.split('/', 3);
  return {
    path: line.slice(depth.length + bytes.length + seconds.length + 3),
    bytes: Number(bytes),
    changedAt: new Date(Math.floor(Number(seconds)) * 1000),
  };
}

const MISSING = 44;
/** A file only: a pipe in its place would be read for ever. */
const READ = `[ -f "$1" ] || exit ${MISSING}; exec head -c "$2" -- "$1"`;

/**
 * The content of a file. Fails at the end if it was not read completely.
 * @throws GatewayError 404 if it does not exist, 413 if it has more bytes
 */
export async function contentOf(sandbox: Sandbox, path: string, mostBytes: number): Promise<AsyncGenerator<Buffer>> {
  const execution = await sandbox.exec({
    argv: ['sh', '-c', READ, 'sh', `${WORKSPACE}/${path}`, String(mostBytes + 1)],
    timeoutMs: TIMEOUT_MS,
    outputBytes: null,
  });
  execution.stdin.end();
  return content(execution, mostBytes);
}

async function* content(execution: Execution, mostBytes: number): AsyncGenerator<Buffer> {
  execution.stderr.resume();
  try {
    let bytes = 0;
    for await (const chunk of execution.stdout) {
      bytes += (chunk as Buffer).length;
      if (bytes > mostBytes) throw new GatewayError('payload_too_large', `the file has more than ${mostBytes} bytes`);
      yield chunk as Buffer;
    }
    const { code, reason } = await execution.ended;
    if (code === MISSING) throw notFound('file with this id in the container');
    if (code !== 0) throw unanswered(reason);
  } finally {
    execution.signal('SIGKILL');
  }
}

function unanswered(reason: string): GatewayError {
  return new GatewayError('server', `The container did not answer (${reason}).`, { status: 503 });
}

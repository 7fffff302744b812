/**
 * Operations on files of a sandbox. They are commands in it: whatever links, pipes or devices its code has planted, a path leads
 * nowhere that this code could not go itself. They need the programs of a usual system: sh, GNU find, coreutils.
 */
import { randomUUID } from 'node:crypto';
import { GatewayError, notFound } from '../base/errors.ts';
import { run } from './run.ts';
import { type Entry, type Sandbox, WORKSPACE } from './sandbox.ts';

/** Longest path of Linux. */
const LONGEST_PATH = 4095;
/** A pipe that took the place of a file would be read forever. */
const TIMEOUT_MS = 60_000;
/** What a line of the listing needs besides the name. */
const ENTRY_BYTES = 64;
const LONGEST_NAME = 255;

/** Exit codes of the scripts. */
const MISSING = 44;
const WRONG_KIND = 45;
const FULL = 46;

const READ = `[ -e "$1" ] || exit ${MISSING}
[ -f "$1" ] || exit ${WRONG_KIND}
exec head -c "$2" -- "$1"`;

/** The length is compared, because the end of the input is also what a dying gateway leaves. */
const WRITE = `folder="\${1%/*}/"
temporary="$folder.write-$3"
mkdir -p -- "$folder" || exit ${WRONG_KIND}
[ ! -d "$1" ] || exit ${WRONG_KIND}
: > "$temporary" || exit ${WRONG_KIND}
cat > "$temporary" && [ "$(stat -c %s -- "$temporary")" = "$2" ] || { rm -f -- "$temporary"; exit ${FULL}; }
[ ! -f "$1" ] || chmod --reference="$1" -- "$temporary"
mv -fT -- "$temporary" "$1" || { rm -f -- "$temporary"; exit ${WRONG_KIND}; }`;

const LIST = `[ -e "$1" ] || exit ${MISSING}
[ -d "$1" ] || exit ${WRONG_KIND}
exec find "$1/" -mindepth 1 -maxdepth 1 -printf '%y/%s/%T@/%f\\0'`;

type Commands = Pick<Sandbox, 'exec'>;

export async function readFile(sandbox: Commands, path: string, mostBytes: number): Promise<Buffer> {
  const target = absolute(path);
  const content = await script(sandbox, READ, [target, String(mostBytes + 1)], { path, most: mostBytes + 1 });
  if (content.length > mostBytes) throw tooLarge(`${shown(path)} has more than ${mostBytes} bytes`);
  return content;
}

export async function writeFile(sandbox: Commands, path: string, content: Buffer | string): Promise<void> {
  const target = absolute(path);
  if (target.endsWith('/')) throw wrongKind(path, 'is not the path of a file');
  const bytes = Buffer.byteLength(content);
  await script(sandbox, WRITE, [target, String(bytes), randomUUID()], { path, most: 0, input: content });
}

export async function listFiles(sandbox: Commands, path: string, most: number): Promise<Entry[]> {
  const longest = (most + 1) * (ENTRY_BYTES + LONGEST_NAME);
  const listing = await script(sandbox, LIST, [absolute(path)], { path, most: longest });
  const entries = listing.toString().split('\0').slice(0, -1).map(entryOf);
  if (entries.length > most) throw tooLarge(`${shown(path)} has more than ${most} entries`);
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}

const KINDS: Readonly<Record<string, Entry['kind']>> = { f: 'file', d: 'folder', l: 'link' };

function entryOf(line: string): Entry {
  const [type = '', size = '', seconds = ''] = line.split('/', 3);
  const kind = KINDS[type] ?? 'other';
  return {
    name: line.slice(type.length + size.length + seconds.length + 3),
    kind,
    bytes: kind === 'file' ? Number(size) : 0,
    changedAt: Math.round(Number(seconds) * 1000),
  };
}

/** `most`: bytes of output. */
interface ScriptOptions {
  path: string;
  most: number;
  input?: Buffer | string;
}

async function script(sandbox: Commands, text: string, args: readonly string[], options: ScriptOptions) {
  const { path, most, input } = options;
  const command = { argv: ['sh', '-c', text, 'sh', ...args], timeoutMs: TIMEOUT_MS, outputBytes: most + 4096 } as const;
  const { ending, stdout } = await run(sandbox, { ...command, argv: ['sh', '-c', text, 'sh', ...args] }, input);
  if (ending.reason === 'output') throw tooLarge(`${shown(path)} is too large to be read`);
  if (ending.reason === 'disk' || ending.code === FULL) throw tooLarge(`${shown(path)} does not fit into the sandbox`);
  if (ending.code === MISSING) throw notFound(`${shown(path)} in the sandbox`);
  if (ending.code === WRONG_KIND) throw wrongKind(path, 'has the wrong kind, or may not be changed');
  if (ending.code === 0) return stdout;
  if (ending.reason === 'exit') throw wrongKind(path, 'cannot be used');
  throw new GatewayError('server', `The sandbox did not answer (${ending.reason}).`, { status: 503 });
}

/** @throws GatewayError 400 if it cannot be a path */
function absolute(path: string): string {
  const target = path.startsWith('/') ? path : `${WORKSPACE}/${path}`;
  if (target.includes('\0')) throw wrongKind(path, 'contains a zero byte');
  if (Buffer.byteLength(target) > LONGEST_PATH) throw wrongKind(path, `has more than ${LONGEST_PATH} bytes`);
  return target;
}

function wrongKind(path: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', `the path ${shown(path)} ${problem}`);
}

function tooLarge(message: string): GatewayError {
  return new GatewayError('payload_too_large', message);
}

const LONGEST_SHOWN = 200;

function shown(path: string): string {
  return JSON.stringify(path.length > LONGEST_SHOWN ? `${path.slice(0, LONGEST_SHOWN)}...` : path);
}

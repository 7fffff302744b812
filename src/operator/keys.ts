/** `gatehouse keys`: access for an operator without a key, or with a lost management key. */
import path from 'node:path';
import {
  createOperatorKey,
  hashToken,
  type KeyKind,
  listOperatorKeys,
  type OperatorKey,
  type OperatorKeyBody,
  revokeOperatorKey,
} from '../access/index.ts';
import { writeSecretFile } from '../base/secret-file.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { withDatabase } from './installation.ts';

export const KEYS_HELP = `gatehouse keys create [--management] [--name NAME] [--limit USD] [--limit-reset daily|weekly|monthly]
                      [--expires-at TIME] [--print]
    creates a key and shows it once; if the output is not a terminal, writes it to a file instead, unless --print is given
gatehouse keys list
    lists every key: the start of its hash, its kind, its name and its masked token
gatehouse keys revoke HASH
    revokes the key with this hash, or with a hash that starts with these 8 or more characters`;

const HASH_SHOWN = 12;

export async function keysCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  switch (action) {
    case 'create':
      return create(rest, parts);
    case 'list':
      parseArguments(rest, {});
      return listKeys(parts, ['inference', 'management']);
    case 'revoke':
      return revokeKey(rest, parts);
    default:
      throw new UsageError(action === undefined ? 'say what to do with keys' : `unknown: keys ${action}`);
  }
}

async function create(args: readonly string[], parts: CommandParts): Promise<number> {
  const { values } = parseArguments(args, {
    management: { type: 'boolean' },
    name: { type: 'string' },
    limit: { type: 'string' },
    'limit-reset': { type: 'string' },
    'expires-at': { type: 'string' },
    print: { type: 'boolean' },
  });
  const kind = values['management'] === true ? 'management' : 'inference';
  const body = keyBody(values, kind);
  const token = await withDatabase(parts, (opened) => createOperatorKey({ ...opened, clock: parts.clock }, kind, body));
  showToken(parts, kind, token, values['print'] === true);
  return 0;
}

/** Prints the token once, on a terminal or with `--print`; otherwise writes it to a file that only its owner can read. */
export function showToken(parts: CommandParts, kind: KeyKind, token: string, print: boolean): void {
  if (print || parts.out.isTTY) {
    parts.out.print(token);
    return;
  }
  const file = path.join(parts.config.dataDir, `key-${hashToken(token).slice(0, HASH_SHOWN)}.txt`);
  writeSecretFile(file, token);
  parts.out.print(`${kind} ${kind === 'scim' ? 'token' : 'key'} written to ${file}`);
}

function keyBody(values: Record<string, string | boolean | undefined>, kind: string): OperatorKeyBody {
  const text = (name: string) => values[name] as string | undefined;
  const limit = text('limit');
  const limitReset = text('limit-reset');
  const expiresAt = text('expires-at');
  if (kind === 'management' && (limit !== undefined || limitReset !== undefined)) {
    throw new UsageError('a management key cannot spend, so it has no limit');
  }
  if (limit !== undefined && !(Number(limit) > 0)) throw new UsageError('--limit must be a number of USD above 0');
  if (limitReset !== undefined && !['daily', 'weekly', 'monthly'].includes(limitReset)) {
    throw new UsageError('--limit-reset must be daily, weekly or monthly');
  }
  return {
    name: text('name') ?? `${kind} key of the command line`,
    ...(limit !== undefined && { limit: Number(limit) }),
    ...(limitReset !== undefined && { limit_reset: limitReset as 'daily' | 'weekly' | 'monthly' }),
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  };
}

export async function listKeys(parts: CommandParts, kinds: readonly KeyKind[]): Promise<number> {
  const all = await withDatabase(parts, (opened) => listOperatorKeys(opened));
  const keys = all.filter(({ kind }) => kinds.includes(kind));
  const rows = keys.map((key) => [
    key.hash.slice(0, HASH_SHOWN),
    key.kind,
    key.label,
    stateOf(key, parts.clock.now()),
    key.createdAt.toISOString().slice(0, 10),
    printable(key.name),
  ]);
  const widths = [0, 1, 2, 3, 4].map((at) => Math.max(0, ...rows.map((row) => row[at]!.length)));
  for (const row of rows) {
    parts.out.print(row.map((cell, at) => (at < widths.length ? cell.padEnd(widths[at]!) : cell)).join('  '));
  }
  return 0;
}

function stateOf({ disabled, expiresAt }: OperatorKey, nowMs: number): string {
  if (disabled) return 'disabled';
  return expiresAt !== null && expiresAt.getTime() <= nowMs ? 'expired' : 'active';
}

/** The creator of a key chooses its name; control characters in it could manipulate the terminal. */
function printable(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd');
}

export async function revokeKey(args: readonly string[], parts: CommandParts): Promise<number> {
  const { positionals } = parseArguments(args, {}, true);
  const [hash] = positionals;
  if (hash === undefined || positionals.length > 1) throw new UsageError('name one key by its hash');
  const key = await withDatabase(parts, (opened) => revokeOperatorKey({ ...opened, clock: parts.clock }, hash));
  parts.out.print(
    `revoked the ${key.kind} ${key.kind === 'scim' ? 'token' : 'key'} ${key.hash.slice(0, HASH_SHOWN)} (${printable(key.name)})`,
  );
  return 0;
}

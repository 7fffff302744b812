/** Writes audit entries. */
import { uuidv7 } from '../base/ids.ts';
import { scrub } from '../base/log.ts';
import type { Exchange } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { hasEntry, insertEntry, lockEntries } from './store.ts';

/** The author of a change, and its occasion. */
export interface Author {
  organizationId: string;
  /**
   * `key`: a management key, or an inference key where every key may do it. `scim`: an identity provider's token.
   * `operator`: the operator on the machine. `sign_in`: a person who signs in without a key. `gateway`: the gateway
   * itself, such as on a configuration change.
   */
  type: 'key' | 'scim' | 'operator' | 'sign_in' | 'gateway';
  keyHash: string | null;
  keyLabel: string | null;
  /** The member responsible for the change: the key's creator, or the person who signs in. */
  userId: string | null;
  requestId: string | null;
  /** The client's address as the trusted proxies report it. */
  sourceAddress: string | null;
  /** Wall time in ms. */
  at: number;
}

export interface Change {
  /** `<noun>.<verb in the past>`: `key.created`, `workspace.updated`, `guardrail.keys_assigned`. */
  action: `${string}.${string}`;
  resourceType: string;
  /** As on the wire: a key by its hash. */
  resourceId: string;
  /** The workspace of the resource; null for the whole organization. */
  workspaceId: string | null;
  /**
   * The resource as the wire shows it; absent if it did not or does not exist. Never a secret, not even encrypted: use
   * hashes and labels. If both are present, only the members that differ are kept.
   */
  before?: object | undefined;
  after?: object | undefined;
}

/** The caller facts that an entry records; a subset of `Caller` in `access/`. */
interface KnownCaller {
  organizationId: string;
  keyHash: string;
  label: string;
  userId: string | null;
  kind: string;
}

/** A longer member, in characters of JSON, is replaced by its length. */
const MAX_MEMBER_LENGTH = 128 * 1024;
/** Names of secrets. No resource on the wire has them; values that get here by mistake must not be stored for ever. */
const SECRET_NAME =
  /^(?:.*_)?(?:secret|password|token|private_key|api_key|authorization|ciphertext|sealed|code|code_verifier)$|^key$/i;
/** A complete token of ours or of most services. Masked tokens contain dots and do not match. */
const TOKEN = /\bsk-[\w-]{24,}/g;
const MASK = '[secret]';

/** The caller of an operation. */
export function authorOf(
  exchange: Pick<Exchange<KnownCaller>, 'caller' | 'requestId' | 'clientAddress' | 'startedAt'>,
): Author {
  const { caller } = exchange;
  return {
    organizationId: caller.organizationId,
    type: caller.kind === 'scim' ? 'scim' : 'key',
    keyHash: caller.keyHash,
    keyLabel: caller.label,
    userId: caller.userId,
    requestId: exchange.requestId,
    sourceAddress: exchange.clientAddress ?? null,
    at: exchange.startedAt,
  };
}

/** The operator on the machine, through the command line. */
export function operatorAuthor(organizationId: string, at: number): Author {
  return { ...NOBODY, type: 'operator', organizationId, at };
}

/** The gateway itself, for changes without a request. */
export function gatewayAuthor(organizationId: string, at: number): Author {
  return { ...NOBODY, type: 'gateway', organizationId, at };
}

const NOBODY = { keyHash: null, keyLabel: null, userId: null, requestId: null, sourceAddress: null };

/**
 * Call it once per change, in the transaction of the change. Writes nothing if `before` and `after` differ only in the
 * time of the change.
 */
export async function recordChange(tx: Queryable, author: Author, change: Change): Promise<void> {
  const [before, after] = differing(membersOf(change.before), membersOf(change.after));
  if (before && after && isOnlyTime(before) && isOnlyTime(after)) return;
  await insertEntry(tx, uuidv7(author.at), author, change, { before: written(before), after: written(after) });
}

/**
 * For changes that several processes notice: writes nothing if an entry with the same action and resource is younger
 * than `withinMs`. Serializes callers until the transaction ends.
 */
export async function recordOnce(tx: Queryable, author: Author, change: Change, withinMs: number): Promise<void> {
  await lockEntries(tx);
  if (await hasEntry(tx, author.organizationId, change, new Date(author.at - withinMs))) return;
  await recordChange(tx, author, change);
}

/** JSON by member. */
type Members = Map<string, string>;

function membersOf(resource: object | undefined): Members | undefined {
  if (resource === undefined) return undefined;
  const members: Members = new Map();
  for (const [name, value] of Object.entries(resource)) {
    const json = JSON.stringify({ [name]: value }, harmless);
    if (json !== '{}') members.set(name, json.slice(JSON.stringify(name).length + 2, -1));
  }
  return members;
}

function differing(before: Members | undefined, after: Members | undefined): [Members?, Members?] {
  if (before === undefined || after === undefined) return [before, after];
  const only = (members: Members, others: Members) =>
    new Map([...members].filter(([name, json]) => others.get(name) !== json));
  return [only(before, after), only(after, before)];
}

function isOnlyTime(members: Members): boolean {
  return [...members.keys()].every((name) => name === 'updated_at');
}

/** Masks secrets, and replaces what JSON or the database cannot represent. */
function harmless(name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Set) return [...value];
  if (typeof value !== 'string') return value;
  if (SECRET_NAME.test(name)) return MASK;
  return scrub(value).replace(TOKEN, MASK).replaceAll('\0', '\ufffd').toWellFormed();
}

function written(members: Members | undefined): string | null {
  if (members === undefined) return null;
  const texts = [...members].map(([name, json]) => {
    const kept = json.length <= MAX_MEMBER_LENGTH ? json : JSON.stringify({ omitted_characters: json.length });
    return `${JSON.stringify(name)}:${kept}`;
  });
  return `{${texts.join(',')}}`;
}

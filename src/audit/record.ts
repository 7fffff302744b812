/** Writing one entry. */
import { uuidv7 } from '../base/ids.ts';
import { scrub } from '../base/log.ts';
import type { Exchange } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { hasEntry, insertEntry, lockEntries } from './store.ts';

/** Who changes something, and on what occasion. */
export interface Author {
  organizationId: string;
  /**
   * A management key or, for what every key may do, an inference key; the token of an identity provider; the operator at
   * the machine; somebody who signs in and has no key yet; the gateway by itself, such as when its configuration changes.
   */
  type: 'key' | 'scim' | 'operator' | 'sign_in' | 'gateway';
  keyHash: string | null;
  keyLabel: string | null;
  /** The member who is meant: the maker of the key, or who signed in. */
  userId: string | null;
  requestId: string | null;
  /** Where the client is, as the trusted proxies say. */
  sourceAddress: string | null;
  /** Wall time in ms. */
  at: number;
}

export interface Change {
  /** `<noun>.<verb in the past>`: `key.created`, `workspace.updated`, `guardrail.keys_assigned`. */
  action: `${string}.${string}`;
  resourceType: string;
  /** As the wire names it: a key by its hash. */
  resourceId: string;
  /** The workspace that the resource belongs to; null: the whole organization. */
  workspaceId: string | null;
  /**
   * The resource as the wire shows it; absent where there was or is none. Never a secret, not even sealed: hashes and
   * labels. With both, only the members that differ are kept.
   */
  before?: object | undefined;
  after?: object | undefined;
}

/** What of a caller an entry names; `access/` has more of it. */
interface KnownCaller {
  organizationId: string;
  keyHash: string;
  label: string;
  userId: string | null;
  kind: string;
}

/** A member that is longer, in characters of JSON, is not kept but for its length. */
const MAX_MEMBER_LENGTH = 128 * 1024;
/** Members of no resource that the wire shows; what stands there by mistake is no reason to keep it for ever. */
const SECRET_NAME =
  /^(?:.*_)?(?:secret|password|token|private_key|api_key|authorization|ciphertext|sealed|code|code_verifier)$|^key$/i;
/** A whole token of ours, or of most services: one that is masked for display has dots in it. */
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

/** Somebody at the machine, through the command line. */
export function operatorAuthor(organizationId: string, at: number): Author {
  return { ...NOBODY, type: 'operator', organizationId, at };
}

/** What happens without anybody asking for it at that moment. */
export function gatewayAuthor(organizationId: string, at: number): Author {
  return { ...NOBODY, type: 'gateway', organizationId, at };
}

const NOBODY = { keyHash: null, keyLabel: null, userId: null, requestId: null, sourceAddress: null };

/**
 * Call it in the transaction of the change, once for each. Nothing is entered where `before` and `after` are the same but
 * for the time of the change: who asks for what is so already changes nothing.
 */
export async function recordChange(tx: Queryable, author: Author, change: Change): Promise<void> {
  const [before, after] = differing(membersOf(change.before), membersOf(change.after));
  if (before && after && isOnlyTime(before) && isOnlyTime(after)) return;
  await insertEntry(tx, uuidv7(author.at), author, change, { before: written(before), after: written(after) });
}

/**
 * For what several processes notice: nothing is written when there is an entry of the same action and resource that is
 * younger than `withinMs`. Until the transaction ends nobody else records anything in this way.
 */
export async function recordOnce(tx: Queryable, author: Author, change: Change, withinMs: number): Promise<void> {
  await lockEntries(tx);
  if (await hasEntry(tx, author.organizationId, change, new Date(author.at - withinMs))) return;
  await recordChange(tx, author, change);
}

/** Each member's JSON. */
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

/** Without what must not be kept, and without what JSON or the database cannot hold. */
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

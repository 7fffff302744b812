/** The secrets that sign the callbacks of a workspace: made when first needed, readable and replaceable at any time. */
import { type Author, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { unixSeconds } from '../base/timestamp.ts';
import { type Sealing, SealingError, sealedColumn } from '../sealing/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import * as store from './secrets.sql.ts';
import { newSecret } from './signed.ts';

export interface SecretParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
}

const PURPOSE = 'batch_callbacks';
const COLUMN = 'sealed';
/** How long a replaced secret signs together with the new one. */
const OVERLAP_MS = 24 * 3_600_000;

/** Rows to re-encrypt after a key rotation. */
export const sealedCallbackSecrets = sealedColumn({
  purpose: PURPOSE,
  table: 'batch_callback_secrets',
  column: COLUMN,
});

export interface CallbackSecret {
  secret: string;
  createdAt: Date;
  /** Until then callbacks are also signed with the previous secret. */
  previousExpiresAt: Date | null;
}

/** Those that sign now, the current one first; empty if none was made yet. @throws SealingError */
export async function signingSecrets(parts: SecretParts, workspaceId: string): Promise<string[]> {
  const stored = await store.validSecrets(parts.database, workspaceId, new Date(parts.clock.now()));
  return opened(parts, stored);
}

/** The current secret of a workspace, made if there is none. */
export async function currentSecret(parts: SecretParts, workspaceId: string, author: Author): Promise<CallbackSecret> {
  const now = new Date(parts.clock.now());
  const read = () => store.validSecrets(parts.database, workspaceId, now);
  let stored = await read();
  if (stored[0]?.expiresAt !== null) {
    const { row } = await sealed(parts, workspaceId, now);
    await changeAs(author, parts, async (tx, changed) => {
      if (await store.insertFirstSecret(tx, row)) await changed({ ...changeOf('created', row), after: shown(row) });
    });
    // Another request may have been faster.
    stored = await read();
  }
  const [current, previous] = stored;
  const [secret] = await presented(() => opened(parts, [current!]));
  return { secret: secret!, createdAt: current!.createdAt, previousExpiresAt: previous?.expiresAt ?? null };
}

/** Replaces the current secret. */
export async function rotateSecret(parts: SecretParts, workspaceId: string, author: Author): Promise<CallbackSecret> {
  const now = new Date(parts.clock.now());
  const expiresAt = new Date(now.getTime() + OVERLAP_MS);
  const { secret, row } = await sealed(parts, workspaceId, now);
  const had = await changeAs(author, parts, async (tx, changed) => {
    const previous = await store.lockCurrentSecret(tx, workspaceId);
    await store.replaceSecret(tx, row, expiresAt);
    const before = previous && { before: shown(previous) };
    await changed({ ...changeOf('rotated', row), ...before, after: shown(row) });
    return previous !== undefined;
  });
  return { secret, createdAt: now, previousExpiresAt: had ? expiresAt : null };
}

function sealed(parts: SecretParts, workspaceId: string, now: Date) {
  return presented(async () => {
    const secret = newSecret();
    const id = uuidv7(now.getTime());
    const record = (await parts.sealing.sealer(PURPOSE)).seal(id, COLUMN, secret);
    const row: store.StoredSecret = { id, workspaceId, sealed: record, createdAt: now, expiresAt: null };
    return { secret, row };
  });
}

async function opened({ sealing }: SecretParts, stored: readonly store.StoredSecret[]): Promise<string[]> {
  if (stored.length === 0) return [];
  const box = await sealing.opener(
    PURPOSE,
    stored.map((each) => each.sealed),
  );
  return stored.map((each) => box.open(each.id, COLUMN, each.sealed));
}

async function presented<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof SealingError)) throw cause;
    const message = 'the callback secret cannot be encrypted or decrypted on this machine at the moment; see its log';
    throw new GatewayError('server', message, { status: 503, cause });
  }
}

function changeOf(verb: 'created' | 'rotated', { id, workspaceId }: store.StoredSecret) {
  return { action: `callback_secret.${verb}`, resourceType: 'callback_secret', resourceId: id, workspaceId } as const;
}

function shown({ id, createdAt }: store.StoredSecret) {
  return { id, created_at: unixSeconds(createdAt) };
}

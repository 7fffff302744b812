/** Creates an intern with everything that belongs to it, once for each idempotency key. */
import { type Caller, hasWorkspace, issueInternKey } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import type { Exchange } from '../http/operation.ts';
import type { Queryable } from '../storage/database.ts';
import { insertVault, isLendable, newVault, type Vault } from '../vault/index.ts';
import { applyEvent, type ChangeParts, internChange, nameTaken } from './change-intern.ts';
import { internError } from './errors.ts';
import { bodyHash, type Intern, isUnfinished } from './intern.ts';
import { firstStatus } from './lifecycle.ts';
import type { CreateIntern } from './schema.ts';
import * as store from './store.ts';

const LONGEST_KEY = 255;
/** Of one workspace. */
const MOST_INTERNS = 1_000;

interface Created {
  intern: Intern;
  /** False: a completed creation that was requested again. */
  isNew: boolean;
}

/** @throws GatewayError 400, 403, 409 */
export async function createIntern(
  exchange: Exchange<Caller>,
  parts: ChangeParts,
  body: CreateIntern,
): Promise<Created> {
  const { caller } = exchange;
  const now = new Date(parts.clock.now());
  const intern = newIntern(caller, body, idempotencyKeyOf(exchange), now);
  const { organizationId, workspaceId } = intern;
  const owner = { type: 'intern' as const, id: intern.id, organizationId, workspaceId };
  const vault = await newVault(parts.sealing, owner, now);
  const author = authorOf(exchange);
  return changeAs(author, parts, async (tx, changed) => {
    if (!(await hasWorkspace(tx, organizationId, workspaceId, true))) {
      throw new GatewayError('permission_denied', 'The workspace of this key was deleted.');
    }
    await store.lockCreator(tx, intern);
    const earlier = await earlierCreation(tx, intern);
    if (earlier !== undefined && !isUnfinished(earlier)) return { intern: earlier, isNew: false };
    if (earlier !== undefined) {
      const resumed = await applyEvent(tx, changed, earlier, 'provision', { at: now });
      await parts.wake(tx, resumed);
      return { intern: resumed, isNew: true };
    }
    const made = { ...intern, vaultId: vault.id };
    await insert(tx, made, vault);
    const { id: internId, name, creatorUserId } = made;
    await issueInternKey(tx, { internId, name, workspaceId, creatorUserId }, now.getTime(), author);
    if (made.status === 'queued') await parts.wake(tx, made);
    await changed(internChange('created', undefined, made));
    return { intern: made, isNew: true };
  });
}

function newIntern(
  { organizationId, workspaceId, userId }: Caller,
  body: CreateIntern,
  idempotencyKey: string | null,
  now: Date,
): Intern {
  const { name, description = null, instructions = null, provision = false, vault_id } = body;
  return {
    ...{ id: uuidv7(now.getTime()), organizationId, workspaceId, creatorUserId: userId },
    ...{ name, description, instructions, model: null },
    ...{ status: firstStatus(provision), epoch: 1, hostname: null, progress: null, lastFailureMessage: null },
    ...{ vaultId: null, attachedVaultId: vault_id?.toLowerCase() ?? null },
    ...{ idempotencyKey, bodySha256: bodyHash(body), provisionOnCreate: provision, provisionedAt: null },
    ...{ lossAcknowledged: false, createdAt: now, updatedAt: now },
  };
}

/** Null: derived from the body. @throws GatewayError 400 */
function idempotencyKeyOf({ headers }: Exchange<Caller>): string | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && key.length > 0 && key.length <= LONGEST_KEY) return key;
  throw internError('invalid_idempotency_key', `Idempotency-Key must have 1 to ${LONGEST_KEY} characters.`);
}

/** @throws GatewayError 409 for a key that came with another body */
async function earlierCreation(tx: Queryable, intern: Intern): Promise<Intern | undefined> {
  const { idempotencyKey } = intern;
  if (idempotencyKey === null) {
    // Without a key, the same body is the same creation, until its intern is renamed or deleted.
    const named = await store.internNamed(tx, intern, intern.name);
    const isSame = named?.idempotencyKey === null && named.bodySha256.equals(intern.bodySha256);
    return isSame && !named.status.startsWith('destroy') ? named : undefined;
  }
  const earlier = await store.internOfRequest(tx, intern, idempotencyKey);
  if (earlier === undefined || earlier.bodySha256.equals(intern.bodySha256)) return earlier;
  const message = 'Idempotency-Key was used for another body.';
  throw internError('invalid_idempotency_key', message, { status: 409 });
}

async function insert(tx: Queryable, intern: Intern, vault: Vault): Promise<void> {
  const { workspaceId, attachedVaultId } = intern;
  if ((await store.internNamed(tx, intern, intern.name)) !== undefined) throw nameTaken(intern.name);
  if (attachedVaultId !== null && !(await isLendable(tx, workspaceId, attachedVaultId))) {
    throw invalidField('vault_id', 'is not the vault of an intern of this workspace');
  }
  if ((await store.countInterns(tx, workspaceId)) >= MOST_INTERNS) {
    throw internError('bad_request', `A workspace has at most ${MOST_INTERNS} interns.`);
  }
  await insertVault(tx, vault);
  await store.insertIntern(tx, intern);
}

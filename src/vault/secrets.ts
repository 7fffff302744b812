/** Writes of secrets: each is one transaction with its audit entries, and is announced to the sandboxes that use the vault. */
import { type Author, type Change, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, notFound, orNotFound } from '../base/errors.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import type { SecretReply } from './schema.ts';
import * as store from './store.ts';
import { openVaultKey, presented, type VaultKey } from './vault-key.ts';
import { newVault, VAULTS_TOPIC } from './vaults.ts';

export interface SecretParts {
  database: Database;
  changes: Pick<Changes, 'announce'>;
  clock: Clock;
  sealing: Sealing;
}

/** The owner of the vault that is written to. */
export interface HeldOwner {
  owner: store.VaultOwner;
  /** Keeps the owner from being deleted until the transaction ends. @throws GatewayError if it was */
  hold(tx: Queryable): Promise<void>;
}

interface WrittenSecret {
  name: string;
  /** Of `boundHosts`. */
  hosts: readonly string[];
  value: string;
}

/** A sandbox gets all secrets of a vault. */
const MOST_SECRETS = 1_000;
const SECRET = { workspace: 'secret with this name in the workspace', intern: 'secret with this name at the intern' };

/** Stores a secret, or replaces its value and hosts. @throws GatewayError */
export async function storeSecret(
  parts: SecretParts,
  author: Author,
  { owner, hold }: HeldOwner,
  written: WrittenSecret,
): Promise<store.ShownSecret> {
  const made = await madeVault(parts, owner);
  return presented(() =>
    changeAs(author, parts, async (tx, changed, announce) => {
      await hold(tx);
      const vault = await lockedVault(tx, owner, made);
      const key = await openVaultKey(parts.sealing, tx, vault);
      const { before, after } = await put(tx, { vault, key, at: new Date(parts.clock.now()) }, written);
      await checkCount(tx, vault.id);
      await changed(changeOf(owner, before, after));
      await announce(VAULTS_TOPIC, vault.id);
      return after;
    }),
  );
}

/** @throws GatewayError 404 */
export async function deleteSecret(
  parts: SecretParts,
  author: Author,
  owner: store.VaultOwner,
  name: string,
): Promise<void> {
  await changeAs(author, parts, async (tx, changed, announce) => {
    const vault = orNotFound(await store.lockVault(tx, owner), SECRET[owner.type]);
    const secret = orNotFound(await store.findSecret(tx, vault.id, name), SECRET[owner.type]);
    await store.deleteSecret(tx, vault.id, name);
    await changed(changeOf(owner, secret, undefined));
    await announce(VAULTS_TOPIC, vault.id);
  });
}

/**
 * Copies secrets of a workspace to one of its interns, all or none. They replace secrets of the same name there.
 *
 * @param names each once
 * @returns the copies in the order of the names
 * @throws GatewayError 404 with the index of the first name that does not exist
 */
export async function copySecrets(
  parts: SecretParts,
  author: Author,
  { owner, hold }: HeldOwner,
  names: readonly string[],
): Promise<store.ShownSecret[]> {
  const { sealing } = parts;
  const source: store.VaultOwner = { ...owner, type: 'workspace', id: owner.workspaceId };
  const made = await madeVault(parts, owner);
  return presented(() =>
    changeAs(author, parts, async (tx, changed, announce) => {
      await hold(tx);
      // That of the workspace first, in every copy, so that no two wait for each other.
      const from = await store.lockVault(tx, source);
      const found = from === undefined ? [] : await store.secretsNamed(tx, from.id, names);
      const secrets = names.map((name, index) => {
        const secret = found.find((one) => one.name === name);
        if (secret === undefined) throw notFound(`${SECRET.workspace} (names[${index}])`);
        return secret;
      });
      const opener = await openVaultKey(sealing, tx, from!);
      const vault = await lockedVault(tx, owner, made);
      const place = { vault, key: await openVaultKey(sealing, tx, vault), at: new Date(parts.clock.now()) };
      const copies: store.ShownSecret[] = [];
      for (const secret of secrets) {
        const { before, after } = await put(tx, place, { ...secret, value: opener.open(secret) });
        await changed(changeOf(owner, before, after));
        copies.push(after);
      }
      await checkCount(tx, vault.id);
      await announce(VAULTS_TOPIC, vault.id);
      return copies;
    }),
  );
}

/** For an owner without a vault; another request may be faster. */
async function madeVault({ database, sealing, clock }: SecretParts, owner: store.VaultOwner) {
  if ((await store.vaultIdOf(database, owner)) !== undefined) return undefined;
  return presented(() => newVault(sealing, owner, new Date(clock.now())));
}

async function lockedVault(
  tx: Queryable,
  owner: store.VaultOwner,
  made: store.Vault | undefined,
): Promise<store.Vault> {
  if (made !== undefined) await store.insertVault(tx, made);
  const vault = await store.lockVault(tx, owner);
  // It was deleted after `madeVault` had seen it; `hold` refuses an owner that is gone.
  if (vault === undefined) throw new GatewayError('invalid_request', 'The vault is being deleted.', { status: 409 });
  return vault;
}

interface Place {
  vault: store.Vault;
  key: VaultKey;
  at: Date;
}

async function put(tx: Queryable, { vault, key, at }: Place, { name, hosts, value }: WrittenSecret) {
  const before = await store.findSecret(tx, vault.id, name);
  const after = {
    ...{ vaultId: vault.id, name, hosts, createdAt: before?.createdAt ?? at, updatedAt: at },
    fingerprint: key.fingerprint(value),
    sealed: key.seal({ name, hosts }, value),
  };
  await store.putSecret(tx, after);
  return { before, after };
}

async function checkCount(tx: Queryable, vaultId: string): Promise<void> {
  if ((await store.countSecrets(tx, vaultId)) <= MOST_SECRETS) return;
  throw new GatewayError('invalid_request', `a vault has at most ${MOST_SECRETS} secrets`);
}

/** `VaultSecret` in `openapi.json`. */
export function secretReply({ name, hosts, fingerprint, createdAt }: store.ShownSecret): SecretReply {
  return { name, hosts: [...hosts], fingerprint, created_at: createdAt.toISOString() };
}

/** A secret in the audit log. */
export function resourceIdOf({ type, id }: store.VaultOwner, name: string): string {
  return type === 'workspace' ? name : `${id}/${name}`;
}

function changeOf(
  owner: store.VaultOwner,
  before: store.ShownSecret | undefined,
  after: store.ShownSecret | undefined,
): Change {
  const verb = after === undefined ? 'deleted' : before === undefined ? 'created' : 'updated';
  const { name } = (after ?? before)!;
  return {
    action: `vault_secret.${verb}`,
    resourceType: 'vault_secret',
    resourceId: resourceIdOf(owner, name),
    workspaceId: owner.workspaceId,
    before: before && secretReply(before),
    after: after && secretReply(after),
  };
}

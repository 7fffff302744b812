/** The sections `vault` and `intern_programme` of the yaml (docs/guides/vault.md). */
import type { Field } from './field.ts';
import { distinct, flag, mapping, textLike } from './readers.ts';

export interface VaultSettings {
  /** Secrets can be stored and deleted. */
  writes: boolean;
}

export interface InternProgrammeSettings {
  everyone: boolean;
  /** UUIDs. */
  workspaces: readonly string[];
  /** Hashes. */
  keys: readonly string[];
}

export const DEFAULT_VAULT: VaultSettings = Object.freeze({ writes: true });

const workspaceId = textLike(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'the id of a workspace, in lower case');
const keyHash = textLike(/^[0-9a-f]{64}$/, 'the hash of a key');

export function vault(field: Field): VaultSettings | undefined {
  const read = mapping(field, { writes: flag });
  return read && { writes: read.writes ?? DEFAULT_VAULT.writes };
}

export function internProgramme(field: Field): InternProgrammeSettings | undefined {
  const read = mapping(field, { everyone: flag, workspaces: distinct(workspaceId), keys: distinct(keyHash) });
  return read && { everyone: read.everyone ?? false, workspaces: read.workspaces ?? [], keys: read.keys ?? [] };
}

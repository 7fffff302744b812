/** The SQL of presets. Callers open the transactions and supply ids and times. */
import type { FormatId } from '../formats/conversation/registry.ts';
import type { Page } from '../http/contract.ts';
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

export interface StoredPreset {
  id: string;
  organizationId: string;
  workspaceId: string;
  slug: string;
  creatorUserId: string | null;
  designatedVersionId: string;
  createdAt: Date;
  updatedAt: Date;
}

export interface StoredVersion {
  id: string;
  presetId: string;
  version: number;
  format: FormatId;
  /** JSON of an object. */
  config: string;
  systemPrompt: string | null;
  creatorId: string;
  createdAt: Date;
}

const PRESET: Columns<StoredPreset> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  slug: 'slug',
  creatorUserId: 'creator_user_id',
  designatedVersionId: 'designated_version_id',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
};

const VERSION: Columns<StoredVersion> = {
  id: 'id',
  presetId: 'preset_id',
  version: 'version',
  format: 'format',
  config: 'config',
  systemPrompt: 'system_prompt',
  creatorId: 'creator_id',
  createdAt: 'created_at',
};

/**
 * Announces a change to processes that compare versions of the workspace's rules, and locks the workspace, so that changes to
 * its presets are serialized. Returns false if there is no such workspace.
 */
export async function renewRules(tx: Queryable, organizationId: string, workspaceId: string): Promise<boolean> {
  const sql = `update workspaces set version = version + 1
    where organization_id = $1 and id = $2 and deleted_at is null returning 1`;
  return (await tx.query(sql, [organizationId, workspaceId])).length > 0;
}

export async function findPreset(db: Queryable, workspaceId: string, slug: string): Promise<StoredPreset | undefined> {
  const sql = `select ${selectList(PRESET, 'p')} from presets p where p.workspace_id = $1 and p.slug = $2`;
  return (await db.query<StoredPreset>(sql, [workspaceId, slug]))[0];
}

/** Newest change first. */
export async function listPresets(
  db: Queryable,
  workspaceId: string,
  { offset, limit }: Page,
): Promise<{ presets: StoredPreset[]; total: number }> {
  const presets = await db.query<StoredPreset>(
    `select ${selectList(PRESET, 'p')} from presets p where p.workspace_id = $1
      order by p.updated_at desc, p.id desc limit $2 offset $3`,
    [workspaceId, limit, offset],
  );
  return { presets, total: await countPresets(db, workspaceId) };
}

export async function countPresets(db: Queryable, workspaceId: string): Promise<number> {
  const sql = 'select count(*)::int as total from presets where workspace_id = $1';
  return (await db.query<{ total: number }>(sql, [workspaceId]))[0]!.total;
}

export async function insertPreset(tx: Queryable, preset: StoredPreset): Promise<void> {
  await insertRow(tx, 'presets', PRESET, preset);
}

export async function designate(tx: Queryable, { id, presetId, createdAt }: StoredVersion): Promise<void> {
  const sql = 'update presets set designated_version_id = $2, updated_at = $3 where id = $1';
  await tx.query(sql, [presetId, id, createdAt]);
}

export async function deletePreset(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from presets where id = $1', [id]);
}

/** For a workspace that is deleted. */
export async function endPresets(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from presets where workspace_id = $1', [workspaceId]);
}

// Versions.

export async function versionWithId(db: Queryable, id: string): Promise<StoredVersion | undefined> {
  const sql = `select ${selectList(VERSION, 'v')} from preset_versions v where v.id = $1`;
  return (await db.query<StoredVersion>(sql, [id]))[0];
}

export async function findVersion(
  db: Queryable,
  presetId: string,
  version: number,
): Promise<StoredVersion | undefined> {
  const sql = `select ${selectList(VERSION, 'v')} from preset_versions v where v.preset_id = $1 and v.version = $2`;
  return (await db.query<StoredVersion>(sql, [presetId, version]))[0];
}

/** Oldest first. */
export async function listVersions(
  db: Queryable,
  presetId: string,
  { offset, limit }: Page,
): Promise<{ versions: StoredVersion[]; total: number }> {
  const versions = await db.query<StoredVersion>(
    `select ${selectList(VERSION, 'v')} from preset_versions v where v.preset_id = $1
      order by v.version limit $2 offset $3`,
    [presetId, limit, offset],
  );
  const sql = 'select count(*)::int as total from preset_versions where preset_id = $1';
  const [row] = await db.query<{ total: number }>(sql, [presetId]);
  return { versions, total: row!.total };
}

/** The number that the next version gets. */
export async function nextVersion(tx: Queryable, presetId: string): Promise<number> {
  const sql = 'select coalesce(max(version), 0)::int + 1 as next from preset_versions where preset_id = $1';
  return (await tx.query<{ next: number }>(sql, [presetId]))[0]!.next;
}

/** @param kept how many of the newest versions stay */
export async function insertVersion(tx: Queryable, version: StoredVersion, kept: number): Promise<void> {
  await insertRow(tx, 'preset_versions', VERSION, version);
  const sql = 'delete from preset_versions where preset_id = $1 and version <= $2';
  await tx.query(sql, [version.presetId, version.version - kept]);
}

type DesignatedRow = Pick<StoredPreset, 'id' | 'workspaceId' | 'slug'> &
  Pick<StoredVersion, 'format' | 'config' | 'systemPrompt'>;

/** The versions that requests of these workspaces use. */
export async function designatedIn(
  db: Pick<Queryable, 'query'>,
  workspaceIds: readonly string[],
): Promise<DesignatedRow[]> {
  return db.query<DesignatedRow>(
    `select p.id, p.workspace_id as "workspaceId", p.slug, v.format, v.config, v.system_prompt as "systemPrompt"
       from presets p join preset_versions v on v.id = p.designated_version_id where p.workspace_id = any($1::uuid[])`,
    [workspaceIds],
  );
}

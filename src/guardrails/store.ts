/** The SQL of guardrails. Callers open the transactions and supply ids and times. */
import type { Page } from '../http/contract.ts';
import { type Columns, insertRow, pick, selectList, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import { completeRules, type GuardrailSettings, type Rules } from './settings.ts';

export interface StoredGuardrail extends GuardrailSettings {
  readonly id: string;
  readonly workspaceId: string;
  readonly isDefault: boolean;
  readonly revision: string;
  readonly createdAt: Date;
  readonly updatedAt: Date | null;
}

interface GuardrailRow extends Omit<StoredGuardrail, 'rules'> {
  /** As written, possibly by an older version. */
  rules: Partial<Rules>;
}

const SETTINGS: Columns<GuardrailSettings> = {
  name: 'name',
  description: 'description',
  rules: { name: 'settings', type: 'jsonb' },
  limitNano: 'limit_nano',
  resetInterval: 'reset_interval',
  includeByok: 'include_byok_in_budgets',
};

const COLUMNS: Columns<StoredGuardrail> = {
  ...SETTINGS,
  id: 'id',
  workspaceId: 'workspace_id',
  isDefault: 'is_default',
  revision: 'revision',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
};

const FIELDS = selectList(COLUMNS, 'g');

/** @param hold locks the guardrail until the transaction ends */
export async function findGuardrail(
  db: Queryable,
  organizationId: string,
  id: string,
  hold = false,
): Promise<StoredGuardrail | undefined> {
  const sql = `select ${FIELDS} from guardrails g
    where g.organization_id = $1 and g.id = $2 ${hold ? 'for update' : ''}`;
  const [row] = await db.query<GuardrailRow>(sql, [organizationId, id]);
  return row && stored(row);
}

/** The default one first, then newest first. */
export async function listGuardrails(
  db: Queryable,
  organizationId: string,
  workspaceId: string,
  { offset, limit }: Page,
): Promise<{ guardrails: StoredGuardrail[]; total: number }> {
  const sql = `select ${FIELDS} from guardrails g
    where g.organization_id = $1 and g.workspace_id = $2
    order by g.is_default desc, g.created_at desc, g.id desc
    limit $3 offset $4`;
  const rows = await db.query<GuardrailRow>(sql, [organizationId, workspaceId, limit, offset]);
  const total = await count(
    db,
    'select count(*)::int as total from guardrails where organization_id = $1 and workspace_id = $2',
    [organizationId, workspaceId],
  );
  return { guardrails: rows.map(stored), total };
}

export async function hasGuardrailNamed(
  db: Queryable,
  organizationId: string,
  workspaceId: string,
  name: string,
): Promise<boolean> {
  const sql = 'select 1 from guardrails where organization_id = $1 and workspace_id = $2 and name = $3 limit 1';
  return (await db.query(sql, [organizationId, workspaceId, name])).length > 0;
}

export async function countGuardrails(db: Queryable, organizationId: string): Promise<number> {
  return count(db, 'select count(*)::int as total from guardrails where organization_id = $1', [organizationId]);
}

/** Returns false if it exists, which only happens for a default guardrail: its workspace has one, with a known id. */
export async function insertGuardrail(
  tx: Queryable,
  organizationId: string,
  guardrail: StoredGuardrail,
): Promise<boolean> {
  const columns = { ...COLUMNS, organizationId: 'organization_id' };
  const row = { ...guardrail, organizationId };
  const rows = await insertRow(tx, 'guardrails', columns, row, 'on conflict do nothing returning id');
  return rows.length > 0;
}

export async function updateGuardrail(
  tx: Queryable,
  id: string,
  settings: GuardrailSettings,
  change: { revision: string; updatedAt: Date },
): Promise<void> {
  const columns = { ...SETTINGS, ...pick(COLUMNS, ['revision', 'updatedAt']) };
  await updateRow(tx, 'guardrails', columns, { ...settings, ...change }, { id });
}

/** Deletes the guardrails and their assignments; returns their ids. */
export async function deleteGuardrailsIn(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'delete from guardrails where workspace_id = $1 returning id';
  return (await tx.query<{ id: string }>(sql, [workspaceId])).map(({ id }) => id);
}

/** Deletes the guardrail and its assignments. */
export async function deleteGuardrail(tx: Queryable, organizationId: string, id: string): Promise<void> {
  await tx.query('delete from guardrails where organization_id = $1 and id = $2', [organizationId, id]);
}

// Workspaces.

interface WorkspaceRow {
  id: string;
  createdAt: Date;
}

/** Workspaces that are not deleted. */
export async function workspacesOf(db: Queryable, organizationId: string): Promise<WorkspaceRow[]> {
  const sql =
    'select id, created_at as "createdAt" from workspaces where organization_id = $1 and deleted_at is null order by id';
  return db.query<WorkspaceRow>(sql, [organizationId]);
}

// What applies to keys.

/** How a guardrail applies to a key. */
export type AssignedVia = 'workspace' | 'member' | 'api-key';

export interface AppliedGuardrail {
  keyId: string;
  via: AssignedVia;
  guardrail: StoredGuardrail;
}

/** The guardrails of keys, of their creators and of their workspaces, in one query. */
export async function guardrailsOfKeys(db: Queryable, keyIds: readonly string[]): Promise<AppliedGuardrail[]> {
  const rows = await db.query<GuardrailRow & { keyId: string; via: AssignedVia }>(
    `select k.id as "keyId", a.via, ${FIELDS}
       from api_keys k
       cross join lateral (
         select 'workspace' as via, 1 as position, d.id from guardrails d where d.is_default and d.workspace_id = k.workspace_id
         union all
         select 'member', 2, m.guardrail_id from guardrail_members m
          where m.organization_id = k.organization_id and m.user_id = k.creator_user_id
         union all
         select 'api-key', 3, e.guardrail_id from guardrail_keys e where e.key_id = k.id
       ) a
       join guardrails g on g.id = a.id
      where k.id = any($1)
      order by a.position`,
    [keyIds],
  );
  return rows.map(({ keyId, via, ...row }) => ({ keyId, via, guardrail: stored(row) }));
}

function stored({ rules, ...row }: GuardrailRow): StoredGuardrail {
  return { ...row, rules: completeRules(rules) };
}

export async function count(db: Queryable, sql: string, values: unknown[]): Promise<number> {
  const [row] = await db.query<{ total: number }>(sql, values);
  return row?.total ?? 0;
}

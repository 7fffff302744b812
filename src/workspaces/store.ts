/** The SQL of workspaces. Callers open the transactions and supply ids and times. */
import type { PromptCachingMode } from '../base/config.ts';
import type { Page } from '../http/contract.ts';
import type { RateLimits } from '../rate-limits/index.ts';
import type { Interval } from '../spend/index.ts';
import { type Columns, insertRow, pick, selectList, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

/** The settings that a client can change. */
export interface WorkspaceSettings {
  name: string;
  slug: string;
  description: string | null;
  defaultTextModel: string | null;
  defaultImageModel: string | null;
  defaultProviderSort: string | null;
  promptCaching: PromptCachingMode | null;
  /** `svc:...`, never empty. */
  disabledServerTools: readonly string[] | null;
  /** null means every key. */
  ioLoggingKeyNumbers: readonly number[] | null;
  ioLoggingSamplingRate: number;
  dataDiscountLogging: boolean;
  broadcast: boolean;
  ioLogging: boolean;
  rateLimits: RateLimits | null;
}

export interface StoredWorkspace {
  id: string;
  organizationId: string;
  isDefault: boolean;
  settings: WorkspaceSettings;
  includeByokInBudgets: boolean;
  createdAt: Date;
  createdBy: string | null;
  updatedAt: Date | null;
}

interface NewWorkspace {
  id: string;
  organizationId: string;
  settings: WorkspaceSettings;
  createdAt: Date;
  createdBy: string | null;
}

interface WorkspaceRow extends Omit<WorkspaceSettings, 'ioLoggingKeyNumbers'> {
  id: string;
  organizationId: string;
  isDefault: boolean;
  ioLoggingKeyNumbers: string[] | null;
  includeByokInBudgets: boolean;
  createdAt: Date;
  createdBy: string | null;
  updatedAt: Date | null;
}

const SETTINGS: Columns<WorkspaceSettings> = {
  name: 'name',
  slug: 'slug',
  description: 'description',
  defaultTextModel: 'default_text_model',
  defaultImageModel: 'default_image_model',
  defaultProviderSort: 'default_provider_sort',
  promptCaching: 'prompt_caching',
  disabledServerTools: 'disabled_server_tools',
  ioLoggingKeyNumbers: { name: 'io_logging_api_key_ids', type: 'bigint[]', read: 'text[]' },
  ioLoggingSamplingRate: 'io_logging_sampling_rate',
  dataDiscountLogging: 'is_data_discount_logging_enabled',
  broadcast: 'is_observability_broadcast_enabled',
  ioLogging: 'is_observability_io_logging_enabled',
  rateLimits: { name: 'rate_limits', type: 'jsonb' },
};

const CREATION: Columns<Omit<NewWorkspace, 'settings'>> = {
  id: 'id',
  organizationId: 'organization_id',
  createdAt: 'created_at',
  createdBy: 'created_by',
};

const SELECT_WORKSPACES = `
  select ${selectList({ ...CREATION, ...SETTINGS }, 'w')}, w.id is not distinct from o.default_workspace_id as "isDefault",
         w.include_byok_in_budgets as "includeByokInBudgets", w.updated_at as "updatedAt"
    from workspaces w
    join organizations o on o.id = w.organization_id
   where w.deleted_at is null and w.organization_id = $1`;

/** Oldest first. */
export async function listWorkspaces(db: Queryable, organizationId: string, page: Page): Promise<StoredWorkspace[]> {
  const sql = `${SELECT_WORKSPACES} order by w.created_at, w.id offset $2 limit $3`;
  const rows = await db.query<WorkspaceRow>(sql, [organizationId, page.offset, page.limit]);
  return rows.map(stored);
}

export async function countWorkspaces(db: Queryable, organizationId: string): Promise<number> {
  const sql = 'select count(*)::int as count from workspaces where organization_id = $1 and deleted_at is null';
  const [row] = await db.query<{ count: number }>(sql, [organizationId]);
  return row?.count ?? 0;
}

/** @param hold locks the row until the transaction ends, which serializes changes */
export async function findWorkspace(
  db: Queryable,
  organizationId: string,
  reference: { id: string } | { slug: string },
  hold = false,
): Promise<StoredWorkspace | undefined> {
  const [column, value] = 'id' in reference ? ['id', reference.id] : ['slug', reference.slug];
  const sql = `${SELECT_WORKSPACES} and w.${column} = $2${hold ? ' for update of w' : ''}`;
  const [row] = await db.query<WorkspaceRow>(sql, [organizationId, value]);
  return row && stored(row);
}

/** Serializes changes of slugs and of the default workspace until the transaction ends. Keys and members stay free. */
export async function lockOrganization(tx: Queryable, organizationId: string): Promise<void> {
  await tx.query('select 1 from organizations where id = $1 for no key update', [organizationId]);
}

export async function isSlugTaken(tx: Queryable, organizationId: string, slug: string): Promise<boolean> {
  const sql = 'select 1 from workspaces where organization_id = $1 and slug = $2 and deleted_at is null';
  return (await tx.query(sql, [organizationId, slug])).length > 0;
}

export async function insertWorkspace(tx: Queryable, { settings, ...created }: NewWorkspace): Promise<void> {
  await insertRow(tx, 'workspaces', { ...CREATION, ...SETTINGS }, { ...created, ...settings });
}

export async function updateWorkspace(
  tx: Queryable,
  id: string,
  settings: WorkspaceSettings,
  updatedAt: Date,
): Promise<void> {
  const columns = { ...SETTINGS, updatedAt: 'updated_at' };
  await updateRow(tx, 'workspaces', columns, { ...settings, updatedAt }, { id }, 'version = version + 1');
}

export async function countActiveKeys(tx: Queryable, workspaceId: string, now: Date): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select count(*)::int as count from api_keys where workspace_id = $1 and deleted_at is null and not disabled
       and (expires_at is null or expires_at > $2)`,
    [workspaceId, now],
  );
  return row?.count ?? 0;
}

/** Keeps the row, because keys and the ledger refer to it; deletes budgets and members. */
export async function endWorkspace(tx: Queryable, { id, organizationId }: StoredWorkspace, now: Date): Promise<void> {
  await tx.query('delete from workspace_budgets where workspace_id = $1', [id]);
  await tx.query('delete from workspace_members where workspace_id = $1', [id]);
  await tx.query('update workspaces set deleted_at = $2, version = version + 1 where id = $1', [id, now]);
  await tx.query('update organizations set default_workspace_id = null where id = $1 and default_workspace_id = $2', [
    organizationId,
    id,
  ]);
  await tx.query(
    'update api_keys set disabled = true, updated_at = $2 where workspace_id = $1 and deleted_at is null and not disabled',
    [id, now],
  );
}

export interface StoredBudget {
  id: string;
  workspaceId: string;
  interval: Interval;
  limitNano: bigint;
  createdAt: Date;
  updatedAt: Date;
}

const SELECT_BUDGETS = `
  select id, workspace_id as "workspaceId", interval, limit_nano as "limitNano", created_at as "createdAt",
         updated_at as "updatedAt"
    from workspace_budgets where workspace_id = $1`;

export function budgetsOfWorkspace(db: Queryable, workspaceId: string): Promise<StoredBudget[]> {
  return db.query<StoredBudget>(SELECT_BUDGETS, [workspaceId]);
}

export async function putBudget(tx: Queryable, budget: Omit<StoredBudget, 'createdAt'>): Promise<void> {
  const { id, workspaceId, interval, limitNano, updatedAt } = budget;
  await tx.query(
    `insert into workspace_budgets (id, workspace_id, interval, limit_nano, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $5)
     on conflict (workspace_id, interval) do update set limit_nano = excluded.limit_nano, updated_at = excluded.updated_at`,
    [id, workspaceId, interval, limitNano, updatedAt],
  );
}

export async function deleteBudget(tx: Queryable, workspaceId: string, interval: Interval): Promise<void> {
  await tx.query('delete from workspace_budgets where workspace_id = $1 and interval = $2', [workspaceId, interval]);
}

/** For changes of the workspace rules outside the workspace's own settings. */
export async function bumpVersion(tx: Queryable, workspaceId: string, includeByok: boolean | undefined): Promise<void> {
  await tx.query(
    `update workspaces set version = version + 1, include_byok_in_budgets = coalesce($2, include_byok_in_budgets)
     where id = $1`,
    [workspaceId, includeByok ?? null],
  );
}

/** The settings that requests depend on. */
const TERMS = pick(SETTINGS, [
  'defaultTextModel',
  'defaultImageModel',
  'defaultProviderSort',
  'promptCaching',
  'disabledServerTools',
  'ioLoggingKeyNumbers',
  'ioLoggingSamplingRate',
  'ioLogging',
  'rateLimits',
]);

export interface TermsRow {
  id: string;
  version: number;
  settings: Pick<WorkspaceSettings, keyof typeof TERMS>;
  includeByok: boolean;
  budgets: { interval: Interval; limitNano: bigint }[];
}

interface RawTerms extends Omit<TermsRow['settings'], 'ioLoggingKeyNumbers'> {
  id: string;
  version: string;
  ioLoggingKeyNumbers: string[] | null;
  includeByokInBudgets: boolean;
  budgets: { interval: Interval; limit: string }[];
}

/** One statement, so that a version and its rules are from the same snapshot. */
export async function termsRows(db: Queryable, workspaceIds: readonly string[]): Promise<TermsRow[]> {
  const rows = await db.query<RawTerms>(
    `select w.id, w.version::text as version, ${selectList(TERMS, 'w')},
            w.include_byok_in_budgets as "includeByokInBudgets",
            coalesce((select jsonb_agg(jsonb_build_object('interval', b.interval, 'limit', b.limit_nano::text))
                        from workspace_budgets b where b.workspace_id = w.id), '[]') as budgets
       from workspaces w where w.id = any($1::uuid[])`,
    [workspaceIds],
  );
  return rows.map(({ id, version, ioLoggingKeyNumbers, includeByokInBudgets, budgets, ...settings }) => ({
    id,
    version: Number(version),
    settings: { ...settings, ioLoggingKeyNumbers: ioLoggingKeyNumbers?.map(Number) ?? null },
    includeByok: includeByokInBudgets,
    budgets: budgets.map(({ interval, limit }) => ({ interval, limitNano: BigInt(limit) })),
  }));
}

function stored(row: WorkspaceRow): StoredWorkspace {
  const { id, organizationId, isDefault, includeByokInBudgets, createdAt, createdBy, updatedAt, ...rest } = row;
  const settings = { ...rest, ioLoggingKeyNumbers: rest.ioLoggingKeyNumbers?.map(Number) ?? null };
  return { id, organizationId, isDefault, includeByokInBudgets, createdAt, createdBy, updatedAt, settings };
}

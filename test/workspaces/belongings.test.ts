/** What becomes of the rows of a deleted workspace. A table with a workspace that is missing here fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';

/** `deleted`: with the workspace (`ended` in `server/operation-parts.ts`, or `endWorkspace`). Otherwise why they stay. */
const ROWS: Record<string, string> = {
  api_keys: 'are disabled, and stay as the keys of past generations',
  audit_entries: 'are never deleted',
  batch_callback_secrets: 'deleted',
  batches: 'deleted',
  byok_keys: 'deleted',
  containers: 'deleted',
  conversations: 'deleted',
  destinations: 'deleted',
  file_uploads: 'deleted',
  files: 'deleted',
  generation_days: 'are the history of what was spent',
  generation_model_days: 'are the history of what was spent',
  generation_totals: 'are the history of what was spent',
  generations: 'are the history of what was spent',
  guardrails: 'deleted',
  intern_archives: 'deleted',
  interns: 'deleted',
  memory_files: 'deleted',
  presets: 'deleted',
  responses: 'deleted',
  scim_group_mappings: 'deleted',
  transcripts: 'end with their retention',
  vaults: 'deleted',
  vector_stores: 'deleted',
  videos: 'deleted',
  workspace_budgets: 'deleted',
  workspace_members: 'deleted',
};

test('every table with a workspace says what becomes of its rows when the workspace is deleted', async (t) => {
  const { database } = await freshDatabase(t, { migrations });
  const tables = await database.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and a.attname = 'workspace_id' and not a.attisdropped`,
  );
  assert.deepEqual(tables.map(({ name }) => name).toSorted(), Object.keys(ROWS).toSorted());
});

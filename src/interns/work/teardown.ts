/** Deletes an intern: archives its workspace, then ends its sandbox, vault and key. */
import { endInternKey } from '../../access/index.ts';
import type { Changed } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Blob, Blobs } from '../../blobs/index.ts';
import type { Sandboxes } from '../../sandboxes/index.ts';
import type { Changes, Database, Queryable } from '../../storage/database.ts';
import { DatabaseUnavailable } from '../../storage/unavailable.ts';
import { endInternVault } from '../../vault/index.ts';
import { type Intern, sandboxIdOf } from '../intern.ts';
import { hasArchive, insertArchive } from './archives.sql.ts';
import { messageOf, type Teardown } from './work.ts';

interface TeardownParts {
  database: Database;
  changes: Pick<Changes, 'announce'>;
  clock: Clock;
  log: Log;
  blobs: Pick<Blobs, 'keep'>;
  sandboxes: Pick<Sandboxes, 'create' | 'destroy' | 'list'>;
}

/** In `last_failure_message` of an intern whose workspace could not be archived. */
const ARCHIVE_FAILED = 'workspace_archive_failed';

/** Requires that nothing of the intern runs. Can be repeated after a failure and after the process died. @throws DatabaseUnavailable */
export async function teardown(parts: TeardownParts, intern: Intern): Promise<Teardown> {
  const { sandboxes, log } = parts;
  const id = sandboxIdOf(intern.id);
  const ends = async (tx: Queryable, changed: Changed, at: Date) => {
    await endInternKey(tx, changed, intern.id, at);
    await endInternVault(parts.changes, tx, intern.id);
  };
  try {
    // Without a driver there is no sandbox, unless the intern has run before.
    const hasWorkspace = (await sandboxes.list()).some((record) => record.id === id);
    if (hasWorkspace) {
      const problem = await archived(parts, intern);
      if (problem !== undefined && !intern.lossAcknowledged) return { problem, finish: ends };
      await sandboxes.destroy(id);
    } else if (
      intern.provisionedAt !== null &&
      !intern.lossAcknowledged &&
      !(await hasArchive(parts.database, intern.id))
    ) {
      return { problem: `${ARCHIVE_FAILED}: this gateway does not find the workspace of the intern.`, finish: ends };
    }
    return { finish: ends };
  } catch (error) {
    if (error instanceof DatabaseUnavailable) throw error;
    log.warn('an intern could not be deleted', { intern: intern.id, error });
    return { problem: `The sandbox could not be removed: ${messageOf(error)}`, finish: ends };
  }
}

/** Returns why the workspace is not archived; undefined if it is. */
async function archived(parts: TeardownParts, intern: Intern): Promise<string | undefined> {
  const { database, sandboxes, log } = parts;
  if (await hasArchive(database, intern.id)) return undefined;
  try {
    const sandbox = await sandboxes.create({ id: sandboxIdOf(intern.id), owner: `intern ${intern.id}` });
    try {
      await kept(parts, intern, await sandbox.snapshot());
    } finally {
      await sandbox.stop();
    }
    return undefined;
  } catch (error) {
    if (error instanceof DatabaseUnavailable) throw error;
    log.warn('the workspace of an intern could not be archived', { intern: intern.id, error });
    return `${ARCHIVE_FAILED}: ${messageOf(error)}`;
  }
}

async function kept({ database, blobs, clock }: TeardownParts, intern: Intern, { id: blobId, bytes }: Blob) {
  const { id: internId, organizationId, workspaceId, name } = intern;
  await database.transaction(async (tx) => {
    await blobs.keep(tx, blobId);
    const row = { internId, organizationId, workspaceId, name, blobId, bytes, createdAt: new Date(clock.now()) };
    await insertArchive(tx, row);
  });
}

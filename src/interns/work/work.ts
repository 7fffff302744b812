/**
 * The work that requests leave behind: starting an intern and deleting it. A job says that there is some; what is to be done is
 * read from the intern's row, so a job that runs twice does no harm.
 */
import { endInternKey } from '../../access/index.ts';
import { type Changed, changeAs, gatewayAuthor } from '../../audit/index.ts';
import type { Job, JobKind, Jobs } from '../../jobs/index.ts';
import type { Changes, Queryable } from '../../storage/database.ts';
import { endInternVault } from '../../vault/index.ts';
import { applyEvent, type ChangeParts } from '../change-intern.ts';
import type { Intern } from '../intern.ts';
import type { LifecycleEvent } from '../lifecycle.ts';
import * as store from '../store.ts';

interface WorkParts extends Omit<ChangeParts, 'wake'> {
  changes: Changes;
}

/** Interns that one process starts or deletes at the same time. */
const CONCURRENCY = 4;

interface InternJob {
  /** Absent: look for interns that no job was sent for. */
  internId?: string;
}

/** The kind of job; register it, and give `wake` to the operations. */
export function internWork(parts: WorkParts, jobs: Pick<Jobs, 'send'>) {
  const kind: JobKind<InternJob> = {
    name: 'interns.work',
    runs: 'many',
    concurrency: CONCURRENCY,
    pollSeconds: 1,
    atStart: true,
    async run({ data }: Job<InternJob>) {
      if (data.internId !== undefined) return work(parts, data.internId);
      // The database may have been restored without its jobs.
      for (const internId of await store.internsAtWork(parts.database, ['queued', 'provisioning', 'destroying'])) {
        await jobs.send(kind, { internId });
      }
    },
  };
  const wake = (tx: Queryable, { id }: Pick<Intern, 'id'>) => jobs.send(kind, { internId: id }, { tx });
  return { kind, wake };
}

async function work(parts: WorkParts, id: string): Promise<void> {
  const intern = await store.internWithId(parts.database, id);
  if (intern?.status === 'queued' || intern?.status === 'provisioning') {
    await happened(parts, intern, 'provision_failed', 'This version of the gateway cannot start interns yet.');
  } else if (intern?.status === 'destroying') {
    await happened(parts, intern, 'destroyed', null);
  }
}

/** Records the end of work that began in the epoch of `intern`, unless a later request overtook it. */
async function happened(
  parts: WorkParts,
  { id, epoch, organizationId }: Intern,
  event: LifecycleEvent,
  lastFailureMessage: string | null,
): Promise<void> {
  const at = new Date(parts.clock.now());
  await changeAs(gatewayAuthor(organizationId, at.getTime()), parts, async (tx, changed) => {
    const intern = await store.lockIntern(tx, id);
    if (intern === undefined || intern.epoch !== epoch) return;
    const taken = intern.status === 'queued' ? await applyEvent(tx, changed, intern, 'taken', { at }) : intern;
    await applyEvent(tx, changed, taken, event, { at, lastFailureMessage });
    if (event === 'destroyed') await endBelongings(parts, tx, changed, id, at);
  });
}

async function endBelongings(
  { changes }: WorkParts,
  tx: Queryable,
  changed: Changed,
  id: string,
  at: Date,
): Promise<void> {
  await endInternKey(tx, changed, id, at);
  await endInternVault(changes, tx, id);
}

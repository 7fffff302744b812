/** The destinations that get records now, decrypted, in the memory of one process; kept current by changes. */
import { WORKSPACES_TOPIC } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { type Log, redact } from '../base/log.ts';
import { type Sealing, SealingError } from '../sealing/index.ts';
import type { Changes, Database } from '../storage/database.ts';
import { Followed } from '../storage/followed.ts';
import { fullConfig } from './config.ts';
import type { Target } from './delivery/send.ts';
import { compileRules, isSampled } from './filters.ts';
import { kindOf } from './kinds/index.ts';
import { type GenerationRecord, shownTo } from './record.ts';
import { openSecrets, TOPIC } from './sealed.ts';
import { activeDestinations, type StoredDestination } from './store.ts';

export interface ActiveDestination extends Target {
  readonly stored: StoredDestination;
  accepts(record: GenerationRecord): boolean;
  /** Those of the records that it may have now, as it may see them now: settings may have changed since they were taken. */
  wanted(records: readonly GenerationRecord[]): GenerationRecord[];
}

interface ActiveParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  log: Log;
  sealing: Sealing;
}

interface Active {
  byId: ReadonlyMap<string, ActiveDestination>;
  byWorkspace: ReadonlyMap<string, readonly ActiveDestination[]>;
  /** Why there are none: this machine cannot decrypt their secrets. Another one may be able to. */
  problem: SealingError | undefined;
}

export class ActiveDestinations {
  readonly #followed: Followed<Active>;

  constructor({ database, changes, clock, log, sealing }: ActiveParts) {
    this.#followed = new Followed({
      ...{ clock, log, topic: TOPIC },
      // A workspace decides whether its generations are forwarded at all.
      changes: {
        freshness: changes.freshness,
        subscribe(topic, changed) {
          for (const each of [topic, WORKSPACES_TOPIC]) changes.subscribe(each, changed);
        },
      },
      name: 'the destinations',
      read: async () => read(await activeDestinations(database), sealing, log),
    });
  }

  start(): Promise<void> {
    return this.#followed.readNow();
  }

  /** Reads memory only. Undefined if the workspace has no destinations, which is the usual case. */
  inWorkspace(workspaceId: string): readonly ActiveDestination[] | undefined {
    // No request waits for it: a missed change takes effect with one of the next requests.
    if (!this.#followed.current) this.#followed.refresh()?.catch(() => {});
    return this.#followed.value?.byWorkspace.get(workspaceId);
  }

  /** As it is in the database: nothing is sent under settings that have changed. Rejects if it cannot be read. */
  async withId(id: string): Promise<ActiveDestination | undefined> {
    const refreshing = this.#followed.refresh();
    if (refreshing !== undefined) await refreshing;
    const active = this.#followed.value;
    if (active?.problem !== undefined) throw active.problem;
    return active?.byId.get(id);
  }

  close(): void {
    this.#followed.close();
  }
}

function grouped(active: readonly ActiveDestination[], problem?: SealingError): Active {
  return {
    byId: new Map(active.map((each) => [each.stored.id, each])),
    byWorkspace: Map.groupBy(active, ({ stored }) => stored.workspaceId),
    problem,
  };
}

async function read(rows: readonly StoredDestination[], sealing: Sealing, log: Log): Promise<Active> {
  if (rows.length === 0) return grouped([]);
  const active: ActiveDestination[] = [];
  try {
    const open = await openSecrets(sealing, rows);
    for (const stored of rows) {
      const kind = kindOf(stored.type);
      if (kind === undefined) continue;
      const secrets = open(stored);
      for (const value of Object.values(secrets)) redact(value);
      const matches = await compiled(stored, log);
      if (matches === undefined) continue;
      const target = { kind, config: fullConfig({ shown: stored.config, secrets }) };
      const isAccepted = (record: GenerationRecord) => accepts(stored, record) && matches(record);
      active.push({
        ...{ ...target, stored, accepts: isAccepted },
        wanted: (records) => records.filter(isAccepted).map((record) => shownTo(stored, record)),
      });
    }
  } catch (error) {
    if (!(error instanceof SealingError)) throw error;
    log.warn('destinations get nothing: their secrets cannot be decrypted', { error });
    return grouped([], error);
  }
  return grouped(active);
}

/** Undefined for rules of an earlier version that this one does not accept: only their destination gets nothing. */
async function compiled({ id, filterRules }: StoredDestination, log: Log) {
  try {
    return await compileRules(filterRules);
  } catch (error) {
    log.warn('a destination gets nothing: its filter rules cannot be used', { destination: id, error });
    return undefined;
  }
}

function accepts({ allowedKeyIds, regions, samplingRate }: StoredDestination, record: GenerationRecord): boolean {
  return (
    regions.includes(record.region) &&
    (allowedKeyIds === null || allowedKeyIds.includes(record.keyId)) &&
    isSampled(record, samplingRate)
  );
}

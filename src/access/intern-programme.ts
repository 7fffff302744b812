/** Who takes part in the programme `interns`, from memory: by the configuration, or else every key of a single member. */
import type { Clock } from '../base/clock.ts';
import type { InternProgrammeSettings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Changes, Database } from '../storage/database.ts';
import { Followed } from '../storage/followed.ts';
import { MEMBERS_TOPIC } from './authenticator.ts';
import type { Caller } from './caller.ts';
import { organizationsOfSeveral } from './members/store.ts';
import { nothingHere } from './permit.ts';

interface ProgrammeParts {
  database: Database;
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  /** The current configuration; null: every key, as long as its organization has a single member. */
  settings(): InternProgrammeSettings | null;
}

type ProgrammeCaller = Pick<Caller, 'organizationId' | 'workspaceId' | 'keyHash'>;

interface InternProgramme {
  /** From memory, for the access rule. */
  includes(caller: ProgrammeCaller): boolean;
  /**
   * For handlers: a rule cannot wait for the database while change notifications are missing. Rejects with GatewayError 404
   * for a caller outside, and 503 if that cannot be read.
   */
  confirm(caller: ProgrammeCaller): Promise<void>;
  close(): void;
}

/** Reads the members once, and follows them. */
export async function followInternProgramme(parts: ProgrammeParts): Promise<InternProgramme> {
  const { database, settings, ...shared } = parts;
  const several = new Followed({
    ...shared,
    topic: MEMBERS_TOPIC,
    name: 'the number of members',
    read: async () => new Set(await organizationsOfSeveral(database)),
  });
  await several.readNow();
  const includes = ({ organizationId, workspaceId, keyHash }: ProgrammeCaller) => {
    const named = settings();
    if (named === null) return several.value?.has(organizationId) === false;
    return named.everyone || named.workspaces.includes(workspaceId) || named.keys.includes(keyHash);
  };
  return {
    includes,
    async confirm(caller) {
      if (settings() === null) await several.refresh();
      if (!includes(caller)) throw nothingHere();
    },
    close: () => several.close(),
  };
}

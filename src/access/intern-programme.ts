/** Who takes part in the programme `interns`, from memory: by the configuration, or else every key of a single member. */
import type { Clock } from '../base/clock.ts';
import type { InternProgrammeSettings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Changes, Database } from '../storage/database.ts';
import { Followed } from '../storage/followed.ts';
import { MEMBERS_TOPIC } from './authenticator.ts';
import type { Caller } from './caller.ts';
import { organizationsOfSeveral } from './members/store.ts';

interface ProgrammeParts {
  database: Database;
  changes: Pick<Changes, 'subscribe' | 'freshness'>;
  clock: Clock;
  log: Log;
  /** The current configuration; null: every key, as long as its organization has a single member. */
  settings(): InternProgrammeSettings | null;
}

interface InternProgramme {
  includes(caller: Pick<Caller, 'organizationId' | 'workspaceId' | 'keyHash'>): boolean;
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
  return {
    includes({ organizationId, workspaceId, keyHash }) {
      const named = settings();
      if (named !== null) {
        return named.everyone || named.workspaces.includes(workspaceId) || named.keys.includes(keyHash);
      }
      // A rule cannot wait. While changes may be missed, each request has the next one judged by a newer number.
      several.refresh()?.catch(() => {});
      return several.value?.has(organizationId) === false;
    },
    close: () => several.close(),
  };
}

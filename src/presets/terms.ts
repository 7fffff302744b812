/** Reads the presets of workspaces for their rules (`workspaces/`), so that requests find them in memory. */
import type { PresetTerms, WorkspaceTerms } from '../access/index.ts';
import { parseJson } from '../base/json.ts';
import type { Fields } from '../formats/conversation/fields.ts';
import type { Queryable } from '../storage/database.ts';
import { designatedIn } from './store.ts';

type PresetsOf = (workspaceIds: readonly string[]) => Promise<ReadonlyMap<string, WorkspaceTerms['presets']>>;

/** By workspace id and slug. */
export function presetsReader(database: Pick<Queryable, 'query'>): PresetsOf {
  return async (workspaceIds) => {
    const found = new Map<string, Map<string, PresetTerms>>();
    for (const { workspaceId, slug, config, ...row } of await designatedIn(database, workspaceIds)) {
      const presets = found.get(workspaceId) ?? new Map<string, PresetTerms>();
      found.set(workspaceId, presets.set(slug, Object.freeze({ ...row, config: parseJson(config) as Fields })));
    }
    return found;
  };
}

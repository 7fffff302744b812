/** Compiles workspace rules, so that requests read them without the database. */
import { NO_TERMS, type TermsOf, type WorkspaceTerms } from '../access/index.ts';
import type { Budget } from '../spend/index.ts';
import type { Database } from '../storage/database.ts';
import { BY_WIDTH } from './budget.ts';
import { type TermsRow, termsRows } from './store.ts';

/** Beyond this number the oldest compiled entry is dropped and compiled again on demand. */
const MAX_COMPILED = 10_000;

/** By workspace id and slug. They may be newer than the version of the rules that was read before, never older. */
type PresetsOf = (workspaceIds: readonly string[]) => Promise<ReadonlyMap<string, WorkspaceTerms['presets']>>;

interface Compiled {
  version: number;
  terms: WorkspaceTerms;
}

/**
 * For `createAccess`: reads and compiles. All keys of a workspace share one object per version, so that spend sees one
 * budget and not one per key.
 */
export function createTerms(database: Pick<Database, 'query'>, presetsOf: PresetsOf): TermsOf {
  const compiled = new Map<string, Compiled>();
  return async (workspaceIds) => {
    const terms = new Map<string, WorkspaceTerms>();
    const rows = await termsRows(database, workspaceIds);
    const changed = rows.filter(({ id, version }) => compiled.get(id)?.version !== version);
    const presets = changed.length === 0 ? undefined : await presetsOf(changed.map(({ id }) => id));
    for (const row of rows) {
      let known = compiled.get(row.id);
      if (known?.version !== row.version) {
        // A result that a newer one has overtaken must not replace it; its reader reads again.
        const fresh = { version: row.version, terms: compile(row, presets?.get(row.id) ?? NO_TERMS.presets) };
        if (known === undefined || known.version < row.version) {
          compiled.delete(row.id);
          compiled.set(row.id, fresh);
        }
        known = fresh;
      }
      terms.set(row.id, known.terms);
    }
    for (const id of compiled.keys()) {
      if (compiled.size <= MAX_COMPILED) break;
      compiled.delete(id);
    }
    return terms;
  };
}

function compile(
  { id, version, settings, includeByok, budgets }: TermsRow,
  presets: WorkspaceTerms['presets'],
): WorkspaceTerms {
  const { disabledServerTools, ioLogging, ioLoggingSamplingRate, ioLoggingKeyNumbers: keyNumbers, ...same } = settings;
  return Object.freeze({
    ...same,
    presets,
    disabledServerTools: new Set(disabledServerTools ?? []),
    budgets: budgets
      .toSorted((a, b) => BY_WIDTH.indexOf(a.interval) - BY_WIDTH.indexOf(b.interval))
      .map(
        ({ interval, limitNano }): Budget =>
          Object.freeze({ scope: 'workspace', scopeId: id, interval, limitNano, includeByok, version }),
      ),
    ioLogging: ioLogging
      ? {
          samplingRate: ioLoggingSamplingRate,
          keyNumbers: keyNumbers === null ? null : new Set(keyNumbers),
        }
      : null,
  });
}

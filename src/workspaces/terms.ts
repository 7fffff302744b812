/** Compiles workspace rules, so that requests read them without the database. */
import type { TermsOf, WorkspaceTerms } from '../access/index.ts';
import type { Budget } from '../spend/index.ts';
import type { Database } from '../storage/database.ts';
import { BY_WIDTH } from './budget.ts';
import { type TermsRow, termsRows } from './store.ts';

/** Beyond this number the oldest compiled entry is dropped and compiled again on demand. */
const MAX_COMPILED = 10_000;

interface Compiled {
  version: number;
  terms: WorkspaceTerms;
}

/**
 * For `createAccess`: reads and compiles. All keys of a workspace share one object per version, so that spend sees one
 * budget and not one per key.
 */
export function createTerms(database: Pick<Database, 'query'>): TermsOf {
  const compiled = new Map<string, Compiled>();
  return async (workspaceIds) => {
    const terms = new Map<string, WorkspaceTerms>();
    for (const row of await termsRows(database, workspaceIds)) {
      let known = compiled.get(row.id);
      if (known?.version !== row.version) {
        // A result that a newer one has overtaken must not replace it; its reader reads again.
        const fresh = { version: row.version, terms: compile(row) };
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

function compile({ id, version, settings, includeByok, budgets }: TermsRow): WorkspaceTerms {
  const { disabledServerTools, ioLogging, ioLoggingSamplingRate, ioLoggingKeyNumbers: keyNumbers, ...same } = settings;
  return Object.freeze({
    ...same,
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

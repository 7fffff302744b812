/** The tables of spend, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { ledger } from './0020-ledger.ts';
import { generationsByMonth } from './0021-generations-by-month.ts';
import { generationsByTime } from './0022-generations-by-time.ts';
import { guardrailMarks } from './0023-guardrail-marks.ts';
import { days } from './0024-days.ts';
import { balances } from './0025-balances.ts';
import { summedRows } from './0026-summed-rows.ts';
import { unreturned } from './0027-unreturned.ts';
import { holds } from './0028-holds.ts';
import { unaskedEndpoints } from './0029-unasked-endpoints.ts';
import { processFacts } from './0030-process-facts.ts';
import { sessionsAndUsers } from './0031-sessions-and-users.ts';
import { rareOutcomes } from './0032-rare-outcomes.ts';
import { modelDays } from './0033-model-days.ts';
import { keys } from './0034-keys.ts';
import { totals } from './0035-totals.ts';
import { workspaceTotals } from './0036-workspace-totals.ts';
import { percentiles } from './0037-percentiles.ts';

export const spendMigrations: readonly Migration[] = [
  ledger,
  generationsByMonth,
  generationsByTime,
  guardrailMarks,
  days,
  balances,
  summedRows,
  unreturned,
  holds,
  unaskedEndpoints,
  processFacts,
  sessionsAndUsers,
  rareOutcomes,
  modelDays,
  keys,
  totals,
  workspaceTotals,
  percentiles,
];

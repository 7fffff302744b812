/**
 * Spend: enters the cost of every request exactly once, and never exceeds a budget.
 *
 * A request calls `reserve` with its cost bound, `begin` before the first dispatch, `attempt` before each further
 * endpoint, `seen`/`reported` while the answer runs, and `settle` once at its end (`contract.ts`). Inside: a journal per
 * process (`journal.ts`), the ledger that moves settled rows into PostgreSQL (`ledger.ts`), leases of budgets (`leases.ts`),
 * and the replay of journals of dead processes (`replay.ts`). Totals for queries are added up by triggers (`days.sql.ts`) and,
 * when an hour is over, by a job (`totals/`).
 */
export type { ActivitySum } from './activity/store.ts';
export { followBalance, setBalance } from './balance/balance.ts';
export { readBalance } from './balance/store.ts';
export type { Budget, Charge, Interval, Refusal, Scope } from './budget.ts';
export { chargeIn, INTERVALS, limitFromUsd, refusalError, windowStart } from './budget.ts';
export type { BudgetState, KeyUsage, OpenGeneration, Reservation, Spend } from './contract.ts';
export { estimatedRow } from './estimate.ts';
export type {
  Accepted,
  ApiType,
  DataRegion,
  Generation,
  GuardrailMark,
  ProviderResponse,
  UnaskedEndpoint,
} from './generation.ts';
export { acceptedPartOf, unansweredRow } from './generation.ts';
export { encodeGeneration, GenerationEnvelope } from './generation-reply.ts';
export type { HoldDraft, Holds } from './holds/holds.ts';
export { ENTERED_WITHIN_MS } from './ledger.ts';
export { spendMigrations } from './migrations/index.ts';
export { spendOperations } from './operations.ts';
export type { SpendOptions } from './options.ts';
export { tidyLedgerJob } from './partitions/retention.ts';
export {
  type Hold,
  listProcesses,
  releaseProcess,
  type SpendProcess,
  unreturnedProcesses,
} from './processes/processes.ts';
export { forgetEveryProcess, livingProcesses } from './processes/store.ts';
export { spentOfAccount } from './reading.ts';
export { type Attempt, unservedAttempt } from './record.ts';
export { type RequestCharge, requestCharges } from './requests.sql.ts';
export { decodeRow, encodeRow, type StoredRow } from './row.ts';
export { createSpend } from './spending.ts';
export { countTotalsJob } from './totals/count.ts';
export { percentileSql } from './totals/histogram.sql.ts';
export { hoursToCount } from './totals/store.ts';
export { binSql, failedSql, promptTokensSql, rowsAsTotals, totalsWhere } from './totals/totals.sql.ts';

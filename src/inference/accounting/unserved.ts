/**
 * The row of a request that reached no endpoint: a guardrail filter refused it, or it ended after a cost before the first turn,
 * such as a search of the plugin `web`.
 */
import { GatewayError } from '../../base/errors.ts';
import { BlockedByFilter } from '../../guardrails/index.ts';
import { type Reservation, type Spend, unansweredRow, unservedAttempt } from '../../spend/index.ts';
import type { RequestContext } from '../context.ts';
import type { Task } from '../task.ts';
import { acceptedOf } from './record.ts';

const NOTHING = { creditNano: 0n, byokNano: 0n };

/** @param thrown as below */
export function needsRow({ hasRow, prepaid }: RequestContext, thrown: unknown): boolean {
  if (hasRow) return false;
  const { tools, generation } = prepaid ?? {};
  return thrown instanceof BlockedByFilter || generation !== undefined || (tools?.metered?.costNano ?? 0n) > 0n;
}

/**
 * Resolves once the row is in the journal. Rejects if it cannot be written.
 * @param thrown why the request ended; undefined if its client has disconnected
 */
export async function enterUnserved(
  context: RequestContext,
  { apiType }: Pick<Task, 'apiType'>,
  thrown: unknown,
  spend: Pick<Spend, 'reserve' | 'begin'>,
): Promise<void> {
  const metered = context.prepaid?.tools.metered;
  context.hasRow = true;
  if (thrown instanceof BlockedByFilter) context.addHits(thrown.hits);
  const { facts } = context.request;
  const accepted = acceptedOf(context, apiType);
  const model = facts.model ?? facts.fallbackModels[0] ?? '';
  const generation =
    context.prepaid?.generation ??
    (await spend.begin(accepted, unservedAttempt(model, NOTHING), await withoutBudgets(context, spend), () => true));
  const error = thrown instanceof GatewayError ? thrown : undefined;
  const row = {
    ...unansweredRow(accepted, model),
    status: error?.status ?? null,
    error: error === undefined ? null : { type: error.type, message: error.message },
    cancelled: error === undefined,
    finishReason: error === undefined ? null : 'error',
    estimated: metered?.estimated ?? false,
    usage: metered?.usage ?? null,
    costNano: metered?.costNano ?? 0n,
  };
  context.sink.entered?.(row, metered);
  const { promise, resolve } = Promise.withResolvers<void>();
  if (generation === undefined) resolve();
  else generation.settle(row, resolve);
  return promise;
}

async function withoutBudgets({ request }: RequestContext, spend: Pick<Spend, 'reserve'>): Promise<Reservation> {
  const reservation = await spend.reserve([], NOTHING, request.startedAt);
  if (reservation.refused) throw new Error('a reservation without budgets was refused');
  return reservation;
}

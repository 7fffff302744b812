/** The row of a request that a guardrail filter refused before it was routed: it costs nothing, but is looked for. */
import type { BlockedByFilter } from '../../guardrails/index.ts';
import { type Spend, unansweredRow } from '../../spend/index.ts';
import type { RequestContext } from '../context.ts';
import type { Task } from '../task.ts';
import { acceptedOf } from './record.ts';

const NOTHING = { creditNano: 0n, byokNano: 0n };

/** Resolves once the row is in the journal. Rejects if it cannot be written. */
export async function enterBlocked(
  context: RequestContext,
  { apiType }: Pick<Task, 'apiType'>,
  error: BlockedByFilter,
  spend: Pick<Spend, 'reserve' | 'begin'>,
): Promise<void> {
  const { facts, startedAt } = context.request;
  context.addHits(error.hits);
  const accepted = acceptedOf(context, apiType);
  const model = facts.model ?? facts.fallbackModels[0] ?? '';
  const reservation = await spend.reserve([], NOTHING, startedAt);
  if (reservation.refused) throw new Error('a reservation without budgets was refused');
  const nobody = { model, endpointId: '', providerName: null, isByok: false };
  const free = { promptTokens: 0, promptNano: 0n, outputPrice: 0n, earlier: NOTHING };
  const generation = await spend.begin(accepted, { ...nobody, ...free }, reservation, () => true);
  const row = {
    ...unansweredRow(accepted, model),
    status: error.status,
    error: { type: error.type, message: error.message },
    finishReason: 'error',
  };
  context.sink.entered?.(row);
  const { promise, resolve } = Promise.withResolvers<void>();
  if (generation === undefined) resolve();
  else generation.settle(row, resolve);
  return promise;
}

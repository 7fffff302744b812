/** Wire schemas of `GET /budget` and `GET /credits`. */
import { Type } from 'typebox';

const BudgetStateSchema = Type.Object(
  {
    scope: Type.String({ description: '`account`, `workspace`, `key` or `guardrail`' }),
    id: Type.String({ description: 'Id of the organization, workspace, key or guardrail' }),
    reset_interval: Type.String({ description: '`daily`, `weekly`, `monthly` or `lifetime`' }),
    limit_usd: Type.Number(),
    spent_usd: Type.Number({ description: 'Spent in the current window' }),
    reserved_usd: Type.Number({ description: 'Reserved for running and future requests; not spent' }),
    unreturned_usd: Type.Number({
      description:
        'The part of `reserved_usd` whose process is gone: all of it until its journal is replayed, then the cost ' +
        'bounds of its open requests. `gatehouse spend release` frees it',
    }),
    remaining_usd: Type.Number({ description: 'The limit minus `spent_usd`; never below 0' }),
    available_usd: Type.Number({ description: 'The limit minus `spent_usd` and `reserved_usd`' }),
    include_byok: Type.Boolean({ description: 'True if spend on BYOK credentials counts too' }),
    window_start: Type.Union([Type.String(), Type.Null()], {
      description: 'Start of the current window; null if it never resets',
    }),
    resets_at: Type.Union([Type.String(), Type.Null()], { description: 'null: never' }),
  },
  { $id: 'BudgetState' },
);

export const BudgetsEnvelope = Type.Object({ data: Type.Array(BudgetStateSchema) }, { $id: 'BudgetStateList' });

export const CreditsEnvelope = Type.Object(
  {
    data: Type.Object({
      total_credits: Type.Number({
        description:
          'Total balance, set by `gatehouse credits set` or else `account.balance_usd`; 1000000000 when `unlimited`',
      }),
      total_usage: Type.Number(),
      unlimited: Type.Boolean({ description: 'True if there is no balance to limit spend' }),
    }),
  },
  { $id: 'Credits' },
);

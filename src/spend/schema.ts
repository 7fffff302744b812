/** Wire schemas of `GET /budget` and `GET /credits` (wire/keys.md). */
import { Type } from 'typebox';

const BudgetStateSchema = Type.Object(
  {
    scope: Type.String({ description: '`account`, `workspace`, `key` or `guardrail`' }),
    id: Type.String({ description: 'Of the organization, workspace, key or guardrail' }),
    reset_interval: Type.String({ description: '`daily`, `weekly`, `monthly` or `lifetime`' }),
    limit_usd: Type.Number(),
    spent_usd: Type.Number({ description: 'In the present window' }),
    reserved_usd: Type.Number({ description: 'Held by processes for running and coming requests; not spent' }),
    unreturned_usd: Type.Number({
      description:
        'The part of what is reserved whose process is gone: all of it until its journal is entered, then the bounds of ' +
        'requests that were open. `gatehouse spend release` frees it',
    }),
    remaining_usd: Type.Number({ description: 'The limit without what is spent; never below 0' }),
    available_usd: Type.Number({ description: 'The same without what is reserved' }),
    include_byok: Type.Boolean({ description: 'Spend through provider keys of your own counts too' }),
    window_start: Type.Union([Type.String(), Type.Null()], { description: 'null: it never began anew' }),
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
          'What may be spent in all: by `gatehouse credits set`, else `account.balance_usd`; 1000000000 when `unlimited`',
      }),
      total_usage: Type.Number(),
      unlimited: Type.Boolean({ description: 'There is no balance' }),
    }),
  },
  { $id: 'Credits' },
);

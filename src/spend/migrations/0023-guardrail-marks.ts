import type { Migration } from '../../storage/migrate.ts';

/** What filters of guardrails found in a request (`GuardrailMark`); null: nothing. */
export const guardrailMarks: Migration = {
  name: '0023-guardrail-marks',
  sql: 'alter table generations add column guardrails jsonb;',
};

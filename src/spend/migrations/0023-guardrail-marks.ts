import type { Migration } from '../../storage/migrate.ts';

/** Guardrail filters that matched in a request (`GuardrailMark`); null for none. */
export const guardrailMarks: Migration = {
  name: '0023-guardrail-marks',
  sql: 'alter table generations add column guardrails jsonb;',
};

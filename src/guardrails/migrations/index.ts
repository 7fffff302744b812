/** The tables of guardrails, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { guardrails } from './0080-guardrails.ts';

export const guardrailMigrations: readonly Migration[] = [guardrails];

import type { Migration } from '../../storage/migrate.ts';

/** Endpoints of the requested models that a request did not ask: [[endpoint id, provider, model, reason, ...]]. */
export const unaskedEndpoints: Migration = {
  name: '0029-unasked-endpoints',
  sql: 'alter table generations add column unasked_endpoints jsonb;',
};

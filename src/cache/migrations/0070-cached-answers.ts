import type { Migration } from '../../storage/migrate.ts';

/**
 * Cached answers. The table is unlogged: after a crash of the database it is empty, as a cache may be at any time.
 * `body` is stored as it was sent.
 */
export const cachedAnswers: Migration = {
  name: '0070-cached-answers',
  sql: `
    create unlogged table cached_answers (
      key bytea primary key,
      source_id text not null,
      created_at timestamptz not null,
      expires_at timestamptz not null,
      model text not null,
      endpoint_id text,
      provider_name text,
      finish_reason text,
      native_finish_reason text,
      size integer not null,
      body bytea not null
    );
    create index cached_answers_expiry on cached_answers (expires_at);
    create index cached_answers_age on cached_answers (created_at) include (size);
  `,
};

import type { Migration } from '../../storage/migrate.ts';

export const consoleSessions: Migration = {
  name: '0210-console-sessions',
  sql: `
    -- Browsers that are signed in to the console.
    create table console_sessions (
      -- SHA-256 of the cookie, which itself is stored nowhere.
      hash text primary key check (hash ~ '^[0-9a-f]{64}$'),
      -- Hash of the management key that the session acts for.
      key_hash text not null,
      -- Hash of the inference key that the session runs models with.
      inference_key_hash text,
      -- As the browser reported it: https://gateway.example
      origin text not null,
      created_at timestamptz not null,
      used_at timestamptz not null,
      expires_at timestamptz not null
    );
    create index console_sessions_end on console_sessions (expires_at);
    create index console_sessions_key on console_sessions (key_hash, created_at);

    -- Links that sign in once; deleted by their use.
    create table console_links (
      hash text primary key check (hash ~ '^[0-9a-f]{64}$'),
      key_hash text not null,
      inference_key_hash text,
      expires_at timestamptz not null
    );
  `,
};

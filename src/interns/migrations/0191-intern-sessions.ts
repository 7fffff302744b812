import type { Migration } from '../../storage/migrate.ts';

export const internSessions: Migration = {
  name: '0191-intern-sessions',
  sql: `
    create table intern_sessions (
      intern_id uuid not null references interns on delete cascade,
      -- As the caller knows it.
      session_id text collate "C" not null,
      -- As the agent knows it.
      agent_session_id text not null,
      -- Who began it: a member, or a key that belongs to the organization itself.
      caller text not null,
      used_at timestamptz not null,
      primary key (intern_id, session_id)
    );

    -- What was said, for agents that cannot load a session.
    create table intern_session_entries (
      intern_id uuid not null,
      session_id text collate "C" not null,
      id uuid not null,
      role text not null check (role in ('user', 'assistant')),
      content text not null,
      primary key (intern_id, session_id, id),
      foreign key (intern_id, session_id) references intern_sessions on delete cascade
    );
  `,
};

import type { Migration } from '../../storage/migrate.ts';

/**
 * Logged inputs and outputs. The texts are JSON, which can express every character that a text column cannot hold.
 * Feedback has one row per generation and category.
 */
export const transcripts: Migration = {
  name: '0071-transcripts',
  sql: `
    create table transcripts (
      id text primary key,
      created_at timestamptz not null,
      key_id text not null,
      workspace_id text not null,
      organization_id text not null,
      input text not null,
      output text not null,
      error text
    );
    create index transcripts_age on transcripts (created_at);

    create table generation_feedback (
      generation_id text not null,
      category text not null,
      organization_id text not null,
      comment text,
      created_at timestamptz not null,
      primary key (generation_id, category)
    );
    create index generation_feedback_age on generation_feedback (created_at);
  `,
};

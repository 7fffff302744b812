import type { Migration } from '../../storage/migrate.ts';

/**
 * What requests and answers said, where that is logged. The texts are JSON, which spells every character that a column of
 * text cannot hold. Feedback is one line a generation and category.
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

import type { Migration } from '../../storage/migrate.ts';

export const itemModels: Migration = {
  name: '0162-item-models',
  sql: `
    alter table batches
      -- Null: each request names its own model.
      alter column model drop not null,
      -- The API that the batch was submitted with, which shows it in its own shape: svc, openai or anthropic.
      add column shape text not null default 'svc',
      -- Headers of the submission that hold for each request.
      add column headers jsonb not null default '{}';
    -- Null: the model of the batch.
    alter table batch_items add column model text;
  `,
};

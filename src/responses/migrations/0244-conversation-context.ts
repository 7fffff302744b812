import type { Migration } from '../../storage/migrate.ts';

export const conversationContext: Migration = {
  name: '0244-conversation-context',
  sql: `
    -- How many items of the input are those that its conversation had before. The request itself added the others.
    alter table responses add column context_items integer not null default 0;
  `,
};

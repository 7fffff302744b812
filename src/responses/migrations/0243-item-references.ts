import type { Migration } from '../../storage/migrate.ts';

export const itemReferences: Migration = {
  name: '0243-item-references',
  sql: `
    -- Where the items are that later requests name by their ids: the output of stored responses.
    create table response_items (
      response_id text not null references responses on delete cascade,
      item_id text not null,
      primary key (response_id, item_id)
    );
    create index response_items_named on response_items (item_id);
    create index conversation_items_named on conversation_items (id);
  `,
};

import type { Migration } from '../../storage/migrate.ts';

const SUMS = ['requests', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens', 'cost_nano', 'byok_nano'];
const KEYS = 'organization_id, day, workspace_id, model, endpoint_id';
const summed = SUMS.map((name) => `sum(${name})::bigint`).join(', ');
const signed = (sign: string, table: string) =>
  `select ${KEYS}, provider_name, ${SUMS.map((name) => `${sign}${name} as ${name}`).join(', ')} from ${table}`;

/** Adds rows of `source` to the totals, in the order of their key, so that transactions cannot deadlock. */
const added = (source: string) => `
  insert into generation_model_days as own (${KEYS}, provider_name, ${SUMS.join(', ')})
  select ${KEYS}, max(provider_name), ${summed} from ${source} changed group by ${KEYS} order by ${KEYS}
  on conflict (${KEYS}) do update set
    provider_name = greatest(own.provider_name, excluded.provider_name),
    ${SUMS.map((name) => `${name} = own.${name} + excluded.${name}`).join(', ')}`;

/**
 * The daily totals of all keys together, for `GET /activity`, which would read a row for each of thousands of keys. Triggers
 * maintain them in the statement that changes `generation_days`, so they equal its sums whichever version of the gateway writes.
 */
export const modelDays: Migration = {
  name: '0033-model-days',
  sql: `
    create table generation_model_days (
      organization_id text collate "C" not null,
      day date not null,
      workspace_id text collate "C" not null,
      model text collate "C" not null,
      endpoint_id text collate "C" not null,
      provider_name text not null,
      ${SUMS.map((name) => `${name} bigint not null`).join(', ')},
      primary key (${KEYS})
    ) with (fillfactor = 50);

    -- No change between the first totals and the triggers.
    lock table generation_days in share row exclusive mode;
    ${added('generation_days')};

    create function add_to_model_days() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' then
        ${added('after')};
      elsif tg_op = 'UPDATE' then
        ${added(`(${signed('', 'after')} union all ${signed('-', 'before')})`)};
      else
        ${added(`(${signed('-', 'before')})`)};
        delete from generation_model_days own using before
        where (${KEYS.replaceAll(/\w+/g, 'own.$&')}) = (${KEYS.replaceAll(/\w+/g, 'before.$&')}) and own.requests = 0;
      end if;
      return null;
    end $$;
    create trigger generation_days_inserted after insert on generation_days
      referencing new table as after for each statement execute function add_to_model_days();
    create trigger generation_days_updated after update on generation_days
      referencing old table as before new table as after for each statement execute function add_to_model_days();
    create trigger generation_days_deleted after delete on generation_days
      referencing old table as before for each statement execute function add_to_model_days();
  `,
};

/** What a next version would do to the busiest tables while processes of this version write to them. */
export const NEXT_MIGRATION = {
  name: '0900-of-the-next-version',
  sql: `
    alter table generations add column of_the_next_version text default 'unknown';
    alter table generation_days add column of_the_next_version bigint not null default 0;
    create index generations_of_the_next_version on generations (of_the_next_version) where of_the_next_version <> 'unknown';
  `,
};

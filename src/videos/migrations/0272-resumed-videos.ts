import type { Migration } from '../../storage/migrate.ts';

export const resumedVideos: Migration = {
  name: '0272-resumed-videos',
  sql: `
    -- What another process needs to continue with a job. Null in jobs of earlier versions, which end with their process.
    alter table videos
      -- The provider's id of the job.
      add column upstream_id text,
      add column endpoint_id text,
      -- Fingerprint of the gateway's credential; '': none, or a BYOK credential
      add column credential text,
      add column byok_id text,
      -- The duration that the request asked for.
      add column seconds integer,
      -- The row of the ledger, as JSON, if nobody learns how the job ends.
      add column estimate text,
      -- The process that polls for it.
      add column claimed_by text;
  `,
};

import type { Migration } from '../../storage/migrate.ts';

/** The ledger, its counters, and the leases that processes hold on them. */
export const ledger: Migration = {
  name: '0020-ledger',
  sql: `
    create table generations (
      id text collate "C" primary key,
      created_at timestamptz not null,
      request_id text,
      key_id text not null,
      workspace_id text not null,
      organization_id text not null,
      api_type text not null,
      streamed boolean not null,
      data_region text not null,
      user_agent text,
      origin text not null,
      title text,
      session_id text,
      external_user text,
      metadata jsonb,
      model text not null,
      endpoint_id text,
      provider_name text,
      upstream_id text,
      is_byok boolean not null,
      status integer,
      error jsonb,
      cancelled boolean not null,
      estimated boolean not null,
      unconfirmed boolean not null,
      finish_reason text,
      native_finish_reason text,
      input_tokens bigint,
      cache_read_tokens bigint,
      cache_write_5m_tokens bigint,
      cache_write_1h_tokens bigint,
      output_tokens bigint,
      reasoning_tokens bigint,
      usage_details jsonb,
      media jsonb not null,
      cost_nano bigint not null,
      byok_nano bigint not null,
      upstream_cost_nano bigint,
      cache_discount_nano bigint,
      latency_ms double precision,
      generation_ms double precision,
      moderation_ms double precision,
      provider_responses jsonb not null,
      service_tier text,
      router text,
      preset_id text,
      web_search_engine text,
      response_cache_source_id text
    );

    -- One counter: scope/id/interval/first millisecond. Updated in place all the time, hence the room for HOT updates.
    create table spend_windows (
      id text collate "C" primary key,
      spent_nano bigint not null,
      byok_nano bigint not null,
      leased_nano bigint not null
    ) with (fillfactor = 50);

    create table spend_leases (
      process_id text not null,
      window_id text collate "C" not null,
      amount_nano bigint not null,
      primary key (process_id, window_id)
    ) with (fillfactor = 50);
    create index spend_leases_window on spend_leases (window_id);

    create table spend_processes (
      id text primary key,
      place text not null,
      seen_at timestamptz not null
    );
  `,
};

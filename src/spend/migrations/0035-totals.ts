import type { Migration } from '../../storage/migrate.ts';

const COUNTS = `
  requests, errors, cancelled, cache_hits, prompt_tokens, completion_tokens, reasoning_tokens, cache_read_tokens,
  cache_write_tokens, cost_nano, byok_nano, upstream_cost_nano, cache_discount_nano, latencies, latency_us, generations,
  generation_us, timed_completion_tokens`;
/** One for each range of latencies of `totals/histogram.sql.ts`. */
const BUCKETS = Array.from({ length: 130 }, (_, at) => `b${at}`);

/**
 * Totals of all that queries ask for, by hour and by day (UTC). They are computed from the rows of an hour when it is over
 * (`totals/count.ts`), so the statement that enters rows does not get slower. It only notes the hours whose totals are not
 * those of its rows, by a trigger, so whichever version of the gateway enters them. A note holds back whoever counts the
 * hour until the rows are committed. At first every hour is noted.
 */
export const totals: Migration = {
  name: '0035-totals',
  sql: `
    create table generation_totals (
      organization_id text collate "C" not null,
      -- hour, day: by model, endpoint and what follows; key_hour, key_day: by key alone.
      grain text collate "C" not null,
      -- The beginning of the hour or day.
      at timestamptz not null,
      workspace_id text collate "C" not null,
      key_id text collate "C",
      model text collate "C",
      endpoint_id text collate "C",
      provider_name text collate "C",
      api_type text collate "C",
      status integer,
      error_type text collate "C",
      -- null where there is nothing to add up.
      ${[...COUNTS.split(','), ...BUCKETS].map((name) => `${name.trim()} bigint`).join(', ')}
    );
    create index generation_totals_of_organization on generation_totals (organization_id, grain, at);
    create index generation_totals_at on generation_totals (at);

    create table generation_hours_to_count (hour timestamptz primary key);

    create function note_hours_to_count(noted timestamptz[]) returns void language plpgsql as $$
    begin
      -- Most of the time there is a note. Processes share its lock, and only who counts the hour waits for them.
      if cardinality(noted) > (select count(*) from (
        select 1 from generation_hours_to_count where hour = any(noted) for key share
      ) locked) then
        insert into generation_hours_to_count select hour from unnest(noted) hour order by hour
        on conflict (hour) do update set hour = excluded.hour;
      end if;
    end $$;

    create function note_hours_of_generations() returns trigger language plpgsql as $$
    begin
      perform note_hours_to_count(array_agg(hour)) from (
        select date_bin(interval '1 hour', created_at, timestamptz '2000-01-01 00:00+00') as hour from entered group by 1
      ) hours;
      return null;
    end $$;
    create trigger generations_entered after insert on generations
      referencing new table as entered for each statement execute function note_hours_of_generations();

    -- The rows of these days are gone with them, whichever version of the gateway has dropped their month.
    create function note_hours_of_days() returns trigger language plpgsql as $$
    begin
      perform note_hours_to_count(array_agg(hour)) from (
        select distinct day::timestamp at time zone 'UTC' + n * interval '1 hour' as hour
        from dropped, generate_series(0, 23) n
      ) hours;
      return null;
    end $$;
    create trigger generation_days_dropped after delete on generation_days
      referencing old table as dropped for each statement execute function note_hours_of_days();

    insert into generation_hours_to_count
    select distinct day::timestamp at time zone 'UTC' + n * interval '1 hour' from (
      select day from generation_model_days
      union select (created_at at time zone 'UTC')::date from generations where not summed
    ) days, generate_series(0, 23) n;

    -- The value at a share of what a histogram counts, as percentile_cont computes it, if the values of a bucket are evenly
    -- spread on a scale of logarithms. The first bucket is below the first bound, the last one above the last.
    create function histogram_percentile(counts bigint[], bounds double precision[], share double precision)
    returns double precision language plpgsql immutable parallel safe as $$
    declare
      total bigint := 0;
      rank bigint;
      before bigint;
      bucket integer;
      place double precision;
      found double precision[] := '{}';
    begin
      for bucket in 1 .. cardinality(counts) loop
        total := total + coalesce(counts[bucket], 0);
      end loop;
      if total = 0 then
        return null;
      end if;
      foreach rank in array array[floor(share * (total - 1)), ceil(share * (total - 1))]::bigint[] loop
        before := 0;
        bucket := 1;
        while before + coalesce(counts[bucket], 0) <= rank loop
          before := before + coalesce(counts[bucket], 0);
          bucket := bucket + 1;
        end loop;
        place := (rank - before + 0.5) / counts[bucket];
        found := found || case
          when bucket = 1 then bounds[1] * place
          when bucket > cardinality(bounds) then bounds[cardinality(bounds)]
          else bounds[bucket - 1] * (bounds[bucket] / bounds[bucket - 1]) ^ place
        end;
      end loop;
      place := share * (total - 1);
      return found[1] + (found[2] - found[1]) * (place - floor(place));
    end $$;
  `,
};

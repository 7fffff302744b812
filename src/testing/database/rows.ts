/** The rows of a gateway process, read directly from its database. */
import path from 'node:path';
import pg from 'pg';
import { clientConfig, type Target } from '../../storage/connection.ts';
import { until } from '../clock/clock.ts';
import type { GatewayHome } from '../process/gateway-process.ts';

export interface Row {
  id: string;
  /** The request's tag, which plans send as `user`. */
  tag: string;
  key: string;
  status: number | null;
  cancelled: boolean;
  estimated: boolean;
  unconfirmed: boolean;
  input: bigint | null;
  output: bigint | null;
  cost: bigint;
}

export function embeddedTarget({ dataDir }: GatewayHome): Target {
  return { socketFolder: path.join(dataDir, 'postgres') };
}

/** A connection of the test's own; it survives the death of the server. */
export async function connect(target: Target): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(target));
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function withClient<T>(target: Target, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(target);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export function readRows(target: Target): Promise<Row[]> {
  return withClient(target, rowsBy);
}

async function rowsBy(client: pg.Client): Promise<Row[]> {
  const { rows } = await client.query<Row>(
    `select id, external_user as tag, key_id as key, status, cancelled, estimated, unconfirmed,
       input_tokens as input, output_tokens as output, cost_nano as cost from generations`,
  );
  return rows;
}

/** What the sums by day say of all rows together. */
export function readDays(target: Target): Promise<{ requests: bigint; input: bigint; cost: bigint }> {
  return withClient(target, async (client) => {
    const { rows } = await client.query(
      `select coalesce(sum(requests), 0)::bigint as requests, coalesce(sum(prompt_tokens), 0)::bigint as input,
         coalesce(sum(cost_nano), 0)::bigint as cost from generation_days`,
    );
    return rows[0];
  });
}

/** Rows once there are `count` of them; fails after a minute. */
export async function rowsOnce(target: Target, count: number): Promise<Row[]> {
  return withClient(target, (client) =>
    until(
      async () => {
        const rows = await rowsBy(client);
        return rows.length >= count ? rows : undefined;
      },
      `there are ${count} rows`,
      60_000,
    ),
  );
}

/** Every row of every table, as one text. */
export function wholeDatabase(target: Target): Promise<string> {
  return withClient(target, async (client) => {
    const tables = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    let text = '';
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`select t::text as row from ${name} t`);
      text += rows.map(({ row }) => row).join('\n');
    }
    return text;
  });
}

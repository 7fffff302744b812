/**
 * ClickHouse over its HTTP interface (clickhouse.com/docs/interfaces/http): the members of a record are columns, and those
 * that the table lacks are skipped. A block that was inserted before is ignored by tables that deduplicate.
 */

import { createHash } from 'node:crypto';
import type { Outgoing } from '../../egress/index.ts';
import type { GenerationRecord } from '../record.ts';
import { baseUrl, type DestinationKind, type FullConfig, headerText, secret, text, under } from './kind.ts';
import { plainRecord } from './plain.ts';

const NAME = { matches: /^[A-Za-z_][A-Za-z0-9_]{0,127}$/, says: 'must consist of letters, digits and underscores' };
const BATCH_UNITS = 4 * 1024 * 1024;

export const clickhouse: DestinationKind = {
  type: 'clickhouse',
  fields: {
    host: baseUrl(),
    database: text({ pattern: NAME }),
    table: text({ pattern: NAME, default: 'SVC_TRACES' }),
    username: headerText(),
    password: secret(),
  },
  durable: false,
  batchUnits: BATCH_UNITS,
  // Inserts no rows, into the same table.
  probe: (config) => insert(config, []),
  requests: (config, records) => [insert(config, records)],
};

function insert({ members, headers }: FullConfig, records: readonly GenerationRecord[]): Outgoing {
  const { host, database, table, username, password } = members;
  const query = new URLSearchParams({
    query: `insert into \`${database}\`.\`${table}\` format JSONEachRow`,
    date_time_input_format: 'best_effort',
    input_format_skip_unknown_fields: '1',
    ...(records.length > 0 && { insert_deduplication_token: tokenOf(records) }),
  });
  return {
    url: `${under(host!, '/')}?${query}`,
    method: 'POST',
    headers: { ...headers, 'x-clickhouse-user': username!, 'x-clickhouse-key': password! },
    body: records.map((record) => JSON.stringify(plainRecord(record))).join('\n'),
  };
}

function tokenOf(records: readonly GenerationRecord[]): string {
  const hash = createHash('sha256');
  for (const { id } of records) hash.update(id);
  return hash.digest('hex');
}

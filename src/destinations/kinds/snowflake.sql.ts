/**
 * Snowflake over its SQL API (docs.snowflake.com/en/developer-guide/sql-api): one statement inserts a batch, whose records
 * are one bound text. The request id keeps a repeated request from inserting twice.
 */

import { createHash } from 'node:crypto';
import type { Outgoing } from '../../egress/index.ts';
import type { GenerationRecord } from '../record.ts';
import { type DestinationKind, type FullConfig, JSON_BODY, secret, text } from './kind.ts';
import { plainRecord } from './plain.ts';

const NAME = { matches: /^[A-Za-z_][A-Za-z0-9_$]{0,127}$/, says: 'must consist of letters, digits, _ and $' };
const ACCOUNT = { matches: /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, says: 'must be an account identifier' };
const TIMEOUT_SECONDS = 60;
const BATCH_UNITS = 2 * 1024 * 1024;

export const snowflake: DestinationKind = {
  type: 'snowflake',
  fields: {
    account: text({ pattern: ACCOUNT, namesHost: true }),
    token: secret(),
    database: text({ pattern: NAME, default: 'SNOWFLAKE_LEARNING_DB' }),
    schema: text({ pattern: NAME, default: 'PUBLIC' }),
    table: text({ pattern: NAME, default: 'SVC_TRACES' }),
    warehouse: text({ pattern: NAME, default: 'COMPUTE_WH' }),
  },
  durable: false,
  batchUnits: BATCH_UNITS,
  // Inserts no rows, into the same table.
  probe: (config, { now }) => insert(config, [], String(now)),
  requests: (config, records) => [insert(config, records, records.map(({ id }) => id).join(' '))],
};

function insert({ members, headers }: FullConfig, records: readonly GenerationRecord[], about: string): Outgoing {
  const { account, token, database, schema, table, warehouse } = members;
  const statement = `insert into "${database}"."${schema}"."${table}" (GENERATION_ID, STARTED_AT, DATA)
    select value:generation_id::varchar, value:started_at::timestamp_tz, value from table(flatten(input => parse_json(?)))`;
  return {
    url: `https://${account}.snowflakecomputing.com/api/v2/statements?requestId=${uuidOf(about)}&retry=true`,
    method: 'POST',
    headers: {
      ...JSON_BODY,
      accept: 'application/json',
      ...headers,
      authorization: `Bearer ${token}`,
      'x-snowflake-authorization-token-type': 'PROGRAMMATIC_ACCESS_TOKEN',
    },
    body: JSON.stringify({
      ...{ statement, timeout: TIMEOUT_SECONDS, database, schema, warehouse },
      bindings: { 1: { type: 'TEXT', value: JSON.stringify(records.map(plainRecord)) } },
    }),
  };
}

/** The same for the same text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `5${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}

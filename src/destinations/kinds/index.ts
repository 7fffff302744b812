/** Every type of destination. */
import { clickhouse } from './clickhouse.sql.ts';
import { configSchema } from './config-schema.ts';
import { datadog } from './datadog.ts';
import type { DestinationKind } from './kind.ts';
import { OTLP_KINDS } from './otlp.ts';
import { posthog } from './posthog.ts';
import { ramp } from './ramp.ts';
import { s3 } from './s3.ts';
import { snowflake } from './snowflake.sql.ts';
import { webhook } from './webhook.ts';

const OTHERS = [webhook, datadog, clickhouse, s3, posthog, ramp, snowflake];
const KINDS: ReadonlyMap<string, DestinationKind> = new Map(
  [...OTLP_KINDS, ...OTHERS].map((kind) => [kind.type, kind]),
);

export const TYPES: readonly string[] = [...KINDS.keys()].toSorted();

/** JSON Schemas of the configs, by type. */
export const CONFIG_SCHEMAS = Object.fromEntries(TYPES.map((type) => [type, configSchema(KINDS.get(type)!)]));

export function kindOf(type: string): DestinationKind | undefined {
  return KINDS.get(type);
}

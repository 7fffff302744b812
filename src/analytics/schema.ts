/** Wire schemas of `/analytics`. `names.ts` checks names, so that an error can list the accepted ones. */
import { type Static, Type } from 'typebox';
import { closed } from '../http/contract.ts';

const Name = Type.String({ minLength: 1, maxLength: 64 });
const Text = Type.String({ maxLength: 2_048 });
const Value = Type.Union([
  Text,
  Type.Number(),
  Type.Array(Type.Union([Text, Type.Number()]), { minItems: 1, maxItems: 1_000 }),
]);

const FilterSchema = Type.Object(
  {
    field: Name,
    operator: Name,
    value: Value,
    include_unset: Type.Optional(
      Type.Boolean({ description: 'With `in` and `not_in`: also match rows without a value' }),
    ),
  },
  closed,
);

export const QuerySchema = Type.Object(
  {
    metrics: Type.Array(Name, { minItems: 1, maxItems: 30 }),
    dimensions: Type.Optional(Type.Array(Name, { maxItems: 6 })),
    granularity: Type.Optional(
      Type.String({ description: '`minute`, `hour`, `day`, `week` (from Monday) or `month`' }),
    ),
    time_range: Type.Optional(
      Type.Object(
        {
          start: Type.String({ description: 'ISO 8601 with seconds and time zone' }),
          end: Type.String({ description: 'Not included' }),
        },
        { ...closed, description: 'Default: the last 30 days' },
      ),
    ),
    filters: Type.Optional(Type.Array(FilterSchema, { maxItems: 20 })),
    order_by: Type.Optional(
      Type.Object({ field: Name, direction: Type.Union([Type.Literal('asc'), Type.Literal('desc')]) }, closed),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    group_limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 10_000, description: 'Maximum rows per combination of dimensions' }),
    ),
    classifier_dimensions: Type.Optional(Type.Unknown({ description: 'Not supported; refused with 400' })),
    classifier_filters: Type.Optional(Type.Unknown({ description: 'Not supported; refused with 400' })),
  },
  { ...closed, $id: 'AnalyticsQuestion' },
);

const Labelled = { name: Type.String(), display_label: Type.String() };

export const MetaEnvelope = Type.Object(
  {
    data: Type.Object({
      dimensions: Type.Array(Type.Object(Labelled)),
      granularities: Type.Array(Type.Object(Labelled)),
      metrics: Type.Array(Type.Object({ ...Labelled, display_format: Type.String(), is_rate: Type.Boolean() })),
      operators: Type.Array(Type.Object({ name: Type.String(), value_type: Type.String() })),
    }),
  },
  { $id: 'AnalyticsMeta' },
);

export const AnswerEnvelope = Type.Object(
  {
    data: Type.Object({
      data: Type.Array(
        Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]), {
          description: 'The requested dimensions and metrics by name, and `date` if a granularity is set',
        }),
      ),
      metadata: Type.Object({
        query_time_ms: Type.Number(),
        row_count: Type.Integer(),
        truncated: Type.Boolean({ description: 'True if there are more rows than the limits allow' }),
      }),
      warnings: Type.Optional(Type.Array(Type.String())),
    }),
  },
  { $id: 'AnalyticsAnswer' },
);

export type QueryBody = Static<typeof QuerySchema>;
export type FilterBody = Static<typeof FilterSchema>;

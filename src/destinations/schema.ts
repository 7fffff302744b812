/** Wire schemas of destinations; validation, static types and the OpenAPI document derive from them. */
import { type Static, Type } from 'typebox';
import { closed, listOf, nullable, pageMembers } from '../http/contract.ts';
import { CONFIG_SCHEMAS } from './kinds/index.ts';

export { DeletedEnvelope } from '../http/contract.ts';

const MAX_KEYS = 100;
const MAX_GROUPS = 10;
const MAX_RULES = 20;
const MAX_VALUE_LENGTH = 500;
const LOWEST_RATE = 0.0001;

const RuleSchema = Type.Object(
  {
    field: Type.Union([
      Type.Literal('model'),
      Type.Literal('provider'),
      Type.Literal('session_id'),
      Type.Literal('user_id'),
      Type.Literal('api_key_name'),
      Type.Literal('finish_reason'),
      Type.Literal('input'),
      Type.Literal('output'),
      Type.Literal('total_cost'),
      Type.Literal('total_tokens'),
      Type.Literal('prompt_tokens'),
      Type.Literal('completion_tokens'),
    ]),
    operator: Type.Union([
      Type.Literal('equals'),
      Type.Literal('not_equals'),
      Type.Literal('contains'),
      Type.Literal('not_contains'),
      Type.Literal('regex'),
      Type.Literal('starts_with'),
      Type.Literal('ends_with'),
      Type.Literal('gt'),
      Type.Literal('lt'),
      Type.Literal('gte'),
      Type.Literal('lte'),
      Type.Literal('exists'),
      Type.Literal('not_exists'),
    ]),
    value: Type.Optional(Type.Union([Type.String({ maxLength: MAX_VALUE_LENGTH }), Type.Number()])),
  },
  closed,
);

const FilterRulesSchema = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean({ default: true })),
    groups: Type.Array(
      Type.Object(
        {
          logic: Type.Optional(Type.Union([Type.Literal('and'), Type.Literal('or')], { default: 'and' })),
          rules: Type.Array(RuleSchema, { minItems: 1, maxItems: MAX_RULES }),
        },
        closed,
      ),
      { maxItems: MAX_GROUPS, description: 'All groups must match' },
    ),
  },
  { ...closed, $id: 'DestinationFilterRules' },
);

const flag = (description: string) => Type.Optional(Type.Boolean({ default: false, description }));

const writable = {
  api_key_hashes: Type.Optional(
    nullable(
      Type.Array(Type.String({ pattern: '^[a-f0-9]{64}$' }), {
        minItems: 1,
        maxItems: MAX_KEYS,
        description: 'null: all keys of the workspace',
      }),
    ),
  ),
  broadcast_generation_cost: flag('Send the upstream cost, the cache discount and whether a BYOK credential was used'),
  broadcast_generation_identity: flag('Send ids of the organization, the workspace, the key and the member'),
  broadcast_generation_request_context: flag('Send the request id, region, user agent, referer and title'),
  enabled: Type.Optional(Type.Boolean({ default: true })),
  filter_rules: Type.Optional(nullable(FilterRulesSchema)),
  privacy_mode: flag('Send neither inputs, outputs nor error messages'),
  regions: Type.Optional(
    Type.Array(
      Type.Union([Type.Literal('global'), Type.Literal('europe'), Type.Literal('us'), Type.Literal('eu')], {
        description: 'Where the request was served; `eu` is `europe`',
      }),
      { minItems: 1, maxItems: 4 },
    ),
  ),
  sampling_rate: Type.Optional(Type.Number({ minimum: LOWEST_RATE, maximum: 1, description: 'Share of the sessions' })),
};

const ConfigSchema = Type.Record(Type.String(), Type.Unknown(), {
  description: 'The members of the type, secrets masked',
});
/** Checked by the type itself, whose errors name the member. */
const WrittenConfigSchema = Type.Record(Type.String(), Type.Unknown(), {
  $id: 'DestinationConfig',
  description: 'The members of the type, whose schema is in `$defs`. Masked secrets in an update are ignored',
  $defs: CONFIG_SCHEMAS,
});
const NameSchema = Type.String({ minLength: 1, maxLength: 255, description: 'Unique in the workspace' });

export const CreateDestinationSchema = Type.Object(
  {
    name: NameSchema,
    type: Type.String({ minLength: 1, maxLength: 50 }),
    config: WrittenConfigSchema,
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Default: the default workspace' })),
    ...writable,
  },
  { ...closed, $id: 'CreateDestination' },
);
export const UpdateDestinationSchema = Type.Object(
  { name: Type.Optional(NameSchema), config: Type.Optional(WrittenConfigSchema), ...writable },
  { ...closed, $id: 'UpdateDestination' },
);

export const ListDestinationsQuerySchema = Type.Object(
  { ...pageMembers, workspace_id: Type.Optional(Type.String({ format: 'uuid' })) },
  closed,
);

export const DestinationParamsSchema = Type.Object({ id: Type.String({ description: 'UUID of the destination' }) });

const DeliverySchema = Type.Object({
  status: Type.String({
    description: '`idle`: nothing was sent yet; `delivering`; `failing`: the last attempt failed',
  }),
  delivered: Type.Integer({ description: 'Generations' }),
  dropped: Type.Integer({
    description:
      'Generations that were not delivered: the queue was full, the destination refused them, or they expired',
  }),
  waiting: Type.Integer({ description: 'Generations that wait in the database' }),
  delivered_at: nullable(Type.String({ format: 'date-time' })),
  failed_at: nullable(Type.String({ format: 'date-time' })),
  last_error: nullable(Type.String()),
});

const DestinationSchema = Type.Object(
  {
    id: Type.String(),
    type: Type.String(),
    name: Type.String(),
    workspace_id: Type.String(),
    config: ConfigSchema,
    enabled: Type.Boolean(),
    privacy_mode: Type.Boolean(),
    sampling_rate: Type.Number(),
    regions: Type.Array(Type.String()),
    api_key_hashes: nullable(Type.Array(Type.String())),
    filter_rules: nullable(FilterRulesSchema),
    broadcast_generation_cost: Type.Boolean(),
    broadcast_generation_identity: Type.Boolean(),
    broadcast_generation_request_context: Type.Boolean(),
    delivery: DeliverySchema,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Destination' },
);

export const TestedEnvelope = Type.Object(
  {
    data: Type.Object({
      accepted: Type.Boolean(),
      error: nullable(Type.String({ description: 'Why the destination did not accept the test; null if it did' })),
    }),
  },
  { $id: 'TestedDestination' },
);

export const DestinationEnvelope = Type.Object({ data: DestinationSchema }, { $id: 'DestinationEnvelope' });
export const DestinationListEnvelope = listOf(DestinationSchema);

export type FilterRules = Static<typeof FilterRulesSchema>;
export type CreateDestinationBody = Static<typeof CreateDestinationSchema>;
export type UpdateDestinationBody = Static<typeof UpdateDestinationSchema>;
export type ListDestinationsQuery = Static<typeof ListDestinationsQuerySchema>;
export type DestinationReply = Static<typeof DestinationSchema>;

/** Wire schemas of keys; validation, static types and the OpenAPI document derive from them. */
import { type Static, Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';
import { RateLimitsSchema } from '../rate-limits/index.ts';

export { DeletedEnvelope } from '../http/contract.ts';

const LimitResetSchema = nullable(Type.Union([Type.Literal('daily'), Type.Literal('weekly'), Type.Literal('monthly')]));
const NameSchema = Type.String({ minLength: 1, maxLength: 200 });
const LimitSchema = nullable(
  Type.Number({
    minimum: 0,
    maximum: 1e9,
    description: 'US dollars; 0 allows only free calls, null means no limit',
  }),
);
const ExternalSchema = Type.Object(
  {
    user: Type.String({ minLength: 1, maxLength: 256, description: "The partner's name of the end user" }),
    api_key: Type.Optional(
      Type.String({
        minLength: 32,
        maxLength: 512,
        pattern: '^[!-~]*$',
        description: 'Stored as a SHA-256 hash. Sent in a header, so it has neither spaces nor characters beyond ASCII',
      }),
    ),
  },
  closed,
);

export const CreateKeySchema = Type.Object(
  {
    name: NameSchema,
    limit: Type.Optional(LimitSchema),
    limit_reset: Type.Optional(LimitResetSchema),
    include_byok_in_limit: Type.Optional(Type.Boolean()),
    rate_limits: Type.Optional(RateLimitsSchema),
    expires_at: Type.Optional(nullable(Type.String({ description: 'ISO 8601 with seconds and time zone' }))),
    creator_user_id: Type.Optional(nullable(Type.String({ maxLength: 100, pattern: '^user_[!-~]*$' }))),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
    external: Type.Optional(ExternalSchema),
  },
  { ...closed, $id: 'CreateKey' },
);

export const UpdateKeySchema = Type.Object(
  {
    name: Type.Optional(NameSchema),
    disabled: Type.Optional(Type.Boolean()),
    limit: Type.Optional(LimitSchema),
    limit_reset: Type.Optional(LimitResetSchema),
    include_byok_in_limit: Type.Optional(Type.Boolean()),
    rate_limits: Type.Optional(RateLimitsSchema),
  },
  { ...closed, $id: 'UpdateKey' },
);

export const RotateKeySchema = Type.Object(
  {
    revoke_previous_after_seconds: nullable(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'How long the current secret keeps working, capped at 30 days; 0 ends it at once, null keeps it until deleted',
      }),
    ),
  },
  { ...closed, $id: 'RotateKey' },
);

export const ListKeysQuerySchema = Type.Object(
  {
    include_disabled: Type.Optional(Type.Boolean()),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
  },
  closed,
);

export const KeyParamsSchema = Type.Object({ hash: Type.String({ description: 'SHA-256 of the key in hexadecimal' }) });

const figures = {
  label: Type.String(),
  limit: nullable(Type.Number()),
  limit_remaining: nullable(Type.Number()),
  limit_reset: nullable(Type.String()),
  include_byok_in_limit: Type.Boolean(),
  rate_limits: RateLimitsSchema,
  usage: Type.Number(),
  usage_daily: Type.Number(),
  usage_weekly: Type.Number(),
  usage_monthly: Type.Number(),
  byok_usage: Type.Number(),
  byok_usage_daily: Type.Number(),
  byok_usage_weekly: Type.Number(),
  byok_usage_monthly: Type.Number(),
  creator_user_id: nullable(Type.String()),
  expires_at: nullable(Type.String()),
};

const KeySchema = Type.Object(
  {
    hash: Type.String(),
    id: Type.Integer({ description: 'Number of the key, as used in `io_logging_api_key_ids`' }),
    name: Type.String(),
    disabled: Type.Boolean(),
    external_user: nullable(Type.String()),
    created_at: Type.String(),
    updated_at: nullable(Type.String()),
    workspace_id: Type.String(),
    ...figures,
  },
  { $id: 'Key' },
);

const CurrentKeySchema = Type.Object(
  {
    ...figures,
    allowed_data_regions: Type.Array(Type.String(), {
      description: 'Regional roots that the guardrails of the key allow; empty if they have none in common',
    }),
    free_model_daily_requests: Type.Object({ limit: Type.Integer(), remaining: Type.Integer(), used: Type.Integer() }),
    is_free_tier: Type.Boolean(),
    is_management_key: Type.Boolean(),
    is_provisioning_key: Type.Boolean({ deprecated: true }),
    organization_id: nullable(Type.String()),
    rate_limit: Type.Object(
      { interval: Type.String(), note: Type.String(), requests: Type.Integer() },
      { deprecated: true },
    ),
    workspace_id: nullable(Type.String()),
  },
  { $id: 'CurrentKey' },
);

export const KeyEnvelope = Type.Object({ data: KeySchema }, { $id: 'KeyEnvelope' });
export const KeyListEnvelope = Type.Object({ data: Type.Array(KeySchema) }, { $id: 'KeyList' });
export const CreatedKeyEnvelope = Type.Object(
  { data: KeySchema, key: Type.String({ description: 'Shown once' }) },
  { $id: 'CreatedKey' },
);
export const RotatedKeyEnvelope = Type.Object(
  {
    data: Type.Intersect([KeySchema, Type.Object({ rotated_from_hash: nullable(Type.String()) })]),
    key: Type.String({ description: 'Shown once' }),
    predecessor: Type.Object({
      hash: Type.String(),
      disabled: Type.Boolean(),
      expires_at: nullable(Type.String()),
    }),
  },
  { $id: 'RotatedKey' },
);
export const CurrentKeyEnvelope = Type.Object({ data: CurrentKeySchema }, { $id: 'CurrentKeyEnvelope' });

export type CreateKeyBody = Static<typeof CreateKeySchema>;
export type UpdateKeyBody = Static<typeof UpdateKeySchema>;
export type RotateKeyBody = Static<typeof RotateKeySchema>;
export type ListKeysQuery = Static<typeof ListKeysQuerySchema>;
export type KeyReply = Static<typeof KeySchema>;
export type CurrentKeyReply = Static<typeof CurrentKeySchema>;

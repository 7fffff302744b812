/** Wire schemas of `GET /activity`. */
import { type Static, Type } from 'typebox';
import { closed } from '../http/contract.ts';

export const ActivityParametersSchema = Type.Object(
  {
    date: Type.Optional(Type.String({ description: 'One completed day (UTC) of the last 30, `2026-01-31`' })),
    api_key_hash: Type.Optional(Type.String({ description: 'SHA-256 of an inference key in hexadecimal' })),
    user_id: Type.Optional(Type.String({ description: 'The member who created the keys, `user_...`' })),
    group_by: Type.Optional(Type.Literal('workspace', { description: 'One row per workspace as well' })),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
  },
  closed,
);

const ActivityItemSchema = Type.Object(
  {
    date: Type.String({ description: 'UTC, `2026-01-31`' }),
    model: Type.String(),
    model_permaslug: Type.String({ description: 'The dated name of the model, if it has one' }),
    endpoint_id: Type.String(),
    provider_name: Type.String(),
    workspace_id: Type.Optional(Type.String({ description: 'With `group_by=workspace`' })),
    usage: Type.Number({ description: 'USD, charged to credits' }),
    byok_usage_inference: Type.Number({ description: "USD, charged to the account's own providers (BYOK)" }),
    requests: Type.Integer(),
    prompt_tokens: Type.Integer(),
    completion_tokens: Type.Integer(),
    reasoning_tokens: Type.Integer(),
  },
  { $id: 'ActivityItem' },
);

export const ActivityReplySchema = Type.Object({ data: Type.Array(ActivityItemSchema) }, { $id: 'Activity' });

export type ActivityParameters = Static<typeof ActivityParametersSchema>;
export type ActivityItem = Static<typeof ActivityItemSchema>;

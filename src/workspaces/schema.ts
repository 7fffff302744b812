/** Wire schemas of workspaces, their members and their budgets. */
import { type Static, Type } from 'typebox';
import { PROMPT_CACHING_MODES } from '../base/config.ts';
import { closed, listOf, nullable } from '../http/contract.ts';
import { RateLimitsSchema } from '../rate-limits/index.ts';
import { INTERVALS } from '../spend/index.ts';

export { DeletedEnvelope } from '../http/contract.ts';

const MAX_LISTED_KEYS = 1_000;
const MAX_LISTED_TOOLS = 100;

const NameSchema = Type.String({ minLength: 1, maxLength: 100 });
const SlugSchema = Type.String({ minLength: 1, maxLength: 50, pattern: '^[a-z0-9]+(?:-[a-z0-9]+)*$' });

const settings = {
  description: Type.Optional(nullable(Type.String({ maxLength: 500 }))),
  default_text_model: Type.Optional(
    nullable(Type.String({ minLength: 1, maxLength: 300, description: 'Used when a request names no model' })),
  ),
  default_image_model: Type.Optional(
    nullable(Type.String({ minLength: 1, maxLength: 300, description: 'The same for `POST /images`' })),
  ),
  default_provider_sort: Type.Optional(
    nullable(
      Type.Union([Type.Literal('price'), Type.Literal('throughput'), Type.Literal('latency'), Type.Literal('exacto')]),
    ),
  ),
  disabled_server_tools: Type.Optional(
    nullable(
      Type.Array(Type.String({ maxLength: 100 }), {
        maxItems: MAX_LISTED_TOOLS,
        description: 'Requests that name one of these server tools are refused with 403',
      }),
    ),
  ),
  io_logging_api_key_ids: Type.Optional(
    nullable(
      Type.Array(Type.Unsafe<number | string>({ type: ['integer', 'string'], maxLength: 64 }), {
        maxItems: MAX_LISTED_KEYS,
        description:
          'Keys whose inputs and outputs are kept, by number (the `id` of a key) or hash; null means every key',
      }),
    ),
  ),
  io_logging_sampling_rate: Type.Optional(Type.Number({ minimum: 0.0001, maximum: 1 })),
  is_data_discount_logging_enabled: Type.Optional(Type.Boolean()),
  is_observability_broadcast_enabled: Type.Optional(Type.Boolean()),
  is_observability_io_logging_enabled: Type.Optional(Type.Boolean()),
  prompt_caching: Type.Optional(
    nullable(
      Type.Enum([...PROMPT_CACHING_MODES], {
        description:
          'Where the gateway places prompt cache breakpoints if the client sets none; null means the account setting',
      }),
    ),
  ),
  rate_limits: Type.Optional(RateLimitsSchema),
};

export const CreateWorkspaceSchema = Type.Object(
  { name: NameSchema, slug: SlugSchema, ...settings },
  { ...closed, $id: 'CreateWorkspace' },
);

export const UpdateWorkspaceSchema = Type.Object(
  { name: Type.Optional(NameSchema), slug: Type.Optional(SlugSchema), ...settings },
  { ...closed, $id: 'UpdateWorkspace' },
);

export const WorkspaceParams = Type.Object({ id: Type.String({ minLength: 1, description: 'UUID or slug' }) });

export const DeleteWorkspaceQuery = Type.Object(
  {
    confirm_default_workspace_deletion: Type.Optional(
      Type.Boolean({ description: 'Must be true to delete the default workspace; its keys are then disabled' }),
    ),
  },
  closed,
);

const WorkspaceSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    slug: Type.String(),
    description: nullable(Type.String()),
    created_at: Type.String(),
    created_by: nullable(Type.String()),
    updated_at: nullable(Type.String()),
    default_guardrail_id: Type.String({ description: 'Derived from the id of the workspace' }),
    default_image_model: nullable(Type.String()),
    default_text_model: nullable(Type.String()),
    default_provider_sort: nullable(Type.String()),
    disabled_server_tools: nullable(Type.Array(Type.String())),
    include_byok_in_budgets: Type.Boolean(),
    io_logging_api_key_ids: nullable(Type.Array(Type.Integer())),
    io_logging_sampling_rate: Type.Number(),
    is_data_discount_logging_enabled: Type.Boolean(),
    is_observability_broadcast_enabled: Type.Boolean(),
    is_observability_io_logging_enabled: Type.Boolean(),
    prompt_caching: nullable(Type.Enum([...PROMPT_CACHING_MODES])),
    rate_limits: RateLimitsSchema,
  },
  { $id: 'Workspace' },
);

export const WorkspaceEnvelope = Type.Object({ data: WorkspaceSchema }, { $id: 'WorkspaceEnvelope' });
export const WorkspaceListEnvelope = listOf(WorkspaceSchema);

export const UserIdsSchema = Type.Object(
  { user_ids: Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { minItems: 1, maxItems: 100 }) },
  { ...closed, $id: 'UserIds' },
);

const MemberSchema = Type.Object(
  {
    id: Type.String(),
    workspace_id: Type.String(),
    user_id: Type.String(),
    role: Type.String({ description: "`admin` or `member`: the member's role in the organization" }),
    created_at: Type.String(),
  },
  { $id: 'WorkspaceMember' },
);

export const MemberListEnvelope = listOf(MemberSchema);
export const AddedMembersEnvelope = Type.Object(
  { added_count: Type.Integer(), data: Type.Array(MemberSchema) },
  { $id: 'AddedWorkspaceMembers' },
);
export const RemovedMembersEnvelope = Type.Object(
  { removed_count: Type.Integer() },
  { $id: 'RemovedWorkspaceMembers' },
);

export const BudgetsParams = Type.Object({ workspace_ref: Type.String({ minLength: 1, description: 'UUID or slug' }) });
export const BudgetParams = Type.Object({
  workspace_ref: Type.String({ minLength: 1, description: 'UUID or slug' }),
  interval: Type.Enum([...INTERVALS]),
});

export const UpsertBudgetSchema = Type.Object(
  {
    limit_usd: Type.Number({ minimum: 1e-9, maximum: 1e9, description: 'US dollars' }),
    include_byok_in_budgets: Type.Optional(
      Type.Boolean({ description: 'Applies to every interval of the workspace; absent leaves it unchanged' }),
    ),
  },
  { ...closed, $id: 'UpsertWorkspaceBudget' },
);

const BudgetSchema = Type.Object(
  {
    id: Type.String(),
    workspace_id: Type.String(),
    limit_usd: Type.Number(),
    reset_interval: Type.String({ description: '`daily`, `weekly`, `monthly` or `lifetime`' }),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'WorkspaceBudget' },
);

export const BudgetEnvelope = Type.Object(
  { data: BudgetSchema, include_byok_in_budgets: Type.Boolean() },
  { $id: 'WorkspaceBudgetEnvelope' },
);
export const BudgetListEnvelope = Type.Object(
  {
    data: Type.Array(BudgetSchema),
    include_byok_in_budgets: Type.Boolean(),
  },
  { $id: 'WorkspaceBudgetList' },
);

export type CreateWorkspaceBody = Static<typeof CreateWorkspaceSchema>;
export type UpdateWorkspaceBody = Static<typeof UpdateWorkspaceSchema>;
export type WorkspaceReply = Static<typeof WorkspaceSchema>;
export type MemberReply = Static<typeof MemberSchema>;
export type UpsertBudgetBody = Static<typeof UpsertBudgetSchema>;
export type BudgetReply = Static<typeof BudgetSchema>;

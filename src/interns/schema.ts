/** Wire schemas of interns; validation, static types and the OpenAPI document derive from them. */
import { type Static, Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';
import { STATUSES } from './lifecycle.ts';

/** Of every intern route. */
export const BODY_BYTES = 1_048_576;
export const DEFAULT_PAGE = 100;
const MOST_PAGE = 500;
const MOST_STATUSES = 8;

export const InternParams = Type.Object({ internId: Type.String({ minLength: 1 }) });

const Name = Type.String({
  minLength: 2,
  maxLength: 17,
  pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$',
  description: 'Unique for a creator within a workspace',
});
const description = Type.Optional(nullable(Type.String({ maxLength: 2_000 })));
const instructions = Type.Optional(nullable(Type.String({ maxLength: 100_000, description: 'Standing prompt' })));

export const CreateInternBody = Type.Object(
  {
    name: Name,
    description,
    instructions,
    provision: Type.Optional(Type.Boolean({ default: false, description: 'Start it at once' })),
    vault_id: Type.Optional(
      Type.String({ format: 'uuid', description: 'The vault of another intern of the workspace, to be borrowed' }),
    ),
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Must be the workspace of the key' })),
  },
  { ...closed, $id: 'CreateInternRequest' },
);

export const UpdateInternBody = Type.Object(
  {
    name: Type.Optional(Name),
    description,
    instructions,
    model: Type.Optional(
      nullable(
        Type.String({
          minLength: 1,
          maxLength: 200,
          pattern: '^[A-Za-z0-9~._:@+-]+/[A-Za-z0-9~._:@+-]+$',
          description: 'Takes effect when the intern is next provisioned. Null: the default model of the workspace',
        }),
      ),
    ),
  },
  { ...closed, $id: 'UpdateInternRequest' },
);

export const DeleteInternBody = Type.Object(
  {
    acknowledge_workspace_loss: Type.Optional(
      Type.Boolean({ default: false, description: 'Delete the intern even if its workspace cannot be archived' }),
    ),
  },
  { ...closed, $id: 'DeleteInternRequest' },
);

/** Of operations that take no fields. */
export const EmptyBody = Type.Object({}, { ...closed, $id: 'NoFields' });

export const ListInternsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_PAGE, default: DEFAULT_PAGE })),
    status: Type.Optional(
      Type.Array(Type.String(), {
        description: `Lifecycle statuses, separated by commas or repeated; at most ${MOST_STATUSES}`,
      }),
    ),
    starting_after: Type.Optional(Type.String({ description: '`next_cursor` of the previous page' })),
    workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Must be the workspace of the key' })),
  },
  closed,
);

const ProgressSchema = Type.Object({
  step_label: Type.String(),
  step_number: Type.Integer({ description: 'From 1' }),
  total_steps: Type.Integer(),
});

export const InternSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: nullable(Type.String()),
    instructions: nullable(Type.String()),
    model: nullable(Type.String({ description: 'As configured. Null: the default model of the workspace' })),
    status: Type.Enum([...STATUSES]),
    hostname: nullable(Type.String()),
    progress: nullable(ProgressSchema),
    last_failure_message: nullable(Type.String()),
    vault_id: nullable(Type.String({ description: 'Its own vault' })),
    attached_vault_id: nullable(Type.String({ description: 'The borrowed vault' })),
    workspace_id: Type.String(),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Intern' },
);

export const InternPage = Type.Object(
  {
    data: Type.Array(InternSchema),
    has_more: Type.Boolean(),
    next_cursor: Type.Optional(Type.String({ description: 'Present when there are more' })),
  },
  { $id: 'InternListResponse' },
);

export const ProvisionReply = Type.Object({ provisioning: Type.Literal(true) }, { $id: 'ProvisionInternResponse' });
export const SuspendReply = Type.Object({ suspended: Type.Literal(true) }, { $id: 'SuspendInternResponse' });
export const DeleteReply = Type.Object({ deleting: Type.Literal(true) }, { $id: 'DeleteInternResponse' });

export const InternErrorSchema = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer({ description: 'The HTTP status' }),
      message: Type.String(),
      metadata: Type.Optional(
        Type.Object({
          reason: Type.String(),
          retryable: Type.Boolean({ description: 'The same request may succeed later' }),
        }),
      ),
    }),
  },
  { $id: 'InternError' },
);

export type CreateIntern = Static<typeof CreateInternBody>;
export type UpdateIntern = Static<typeof UpdateInternBody>;
export type DeleteIntern = Static<typeof DeleteInternBody>;
export type ListInterns = Static<typeof ListInternsQuery>;
export type InternReply = Static<typeof InternSchema>;

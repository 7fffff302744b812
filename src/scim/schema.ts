/** Wire schemas of groups, group mappings and sync jobs. */
import { type Static, Type } from 'typebox';
import { closed, listOf, nullable } from '../http/contract.ts';

export { DeletedEnvelope } from '../http/contract.ts';

const RoleSchema = Type.Union([Type.Literal('admin'), Type.Literal('member')]);
const Uuid = Type.String({ format: 'uuid' });

export const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 100 }) });

export const NothingSchema = Type.Object({}, { ...closed, $id: 'Nothing' });

export const CreateMappingSchema = Type.Object(
  {
    scim_group_id: Uuid,
    workspace_id: Uuid,
    role: RoleSchema,
  },
  { ...closed, $id: 'CreateScimGroupMapping' },
);

export const UpdateMappingSchema = Type.Object(
  { role: Type.Optional(RoleSchema) },
  { ...closed, $id: 'UpdateScimGroupMapping' },
);

export const DeleteMappingQuery = Type.Object(
  {
    keep_members: Type.Boolean({
      description: 'True keeps the members that this mapping added as manual members; false removes them',
    }),
  },
  closed,
);

const ScimGroupSchema = Type.Object(
  {
    id: Type.String(),
    organization_id: Type.String(),
    display_name: Type.String(),
    external_id: nullable(Type.String({ description: 'Id at the identity provider' })),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'ScimGroup' },
);

const ScimGroupMappingSchema = Type.Object(
  {
    id: Type.String(),
    organization_id: Type.String(),
    scim_group_id: Type.String(),
    workspace_id: Type.String(),
    role: Type.String({ description: '`admin` or `member`' }),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'ScimGroupMapping' },
);

const ScimSyncJobSchema = Type.Object(
  {
    id: Type.String(),
    status: Type.String({ description: '`queued`, `running`, `succeeded` or `failed`' }),
    synced_groups: nullable(Type.Integer({ description: 'Number of groups that were updated' })),
    deleted_groups: nullable(
      Type.Integer({ description: 'Number of groups deleted because the identity provider no longer has them' }),
    ),
    error_message: nullable(Type.String()),
    created_at: Type.String(),
    started_at: nullable(Type.String()),
    finished_at: nullable(Type.String()),
  },
  { $id: 'ScimSyncJob' },
);

export const GroupListEnvelope = listOf(ScimGroupSchema);
export const MappingListEnvelope = listOf(ScimGroupMappingSchema);
export const MappingEnvelope = Type.Object({ data: ScimGroupMappingSchema }, { $id: 'ScimGroupMappingEnvelope' });
export const SyncJobEnvelope = Type.Object({ data: ScimSyncJobSchema }, { $id: 'ScimSyncJobEnvelope' });

export type CreateMappingBody = Static<typeof CreateMappingSchema>;
export type UpdateMappingBody = Static<typeof UpdateMappingSchema>;
export type GroupReply = Static<typeof ScimGroupSchema>;
export type MappingReply = Static<typeof ScimGroupMappingSchema>;
export type SyncJobReply = Static<typeof ScimSyncJobSchema>;

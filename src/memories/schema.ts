/** Schemas of `/memories`. */
import Type, { type Static } from 'typebox';
import { closed, listOf, pageMembers } from '../http/contract.ts';

const workspace = { workspace_id: Type.Optional(Type.String({ format: 'uuid' })) };

export const ListMemoriesQuerySchema = Type.Object(
  {
    ...pageMembers,
    ...workspace,
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'The memory of this end user' })),
    session_id: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'The memory of this session' })),
  },
  closed,
);

export const MemoryQuerySchema = Type.Object(workspace, closed);

export const MemoryParamsSchema = Type.Object({ id: Type.String({ description: 'As returned by the list' }) });

const members = {
  id: Type.String({ description: 'SHA-256 of the owner, in hexadecimal digits' }),
  scope: Type.Enum(['user', 'session']),
  bytes: Type.Integer({ minimum: 0 }),
  updated_at: Type.String({ format: 'date-time' }),
};

const MemorySchema = Type.Object({ ...members, file_count: Type.Integer({ minimum: 1 }) }, { $id: 'Memory' });

const MemoryFileSchema = Type.Object(
  {
    path: Type.String(),
    content: Type.String(),
    bytes: Type.Integer({ minimum: 0 }),
    updated_at: Type.String({ format: 'date-time' }),
  },
  { $id: 'MemoryFile' },
);

export const MemoryListEnvelope = listOf(MemorySchema);
export const MemoryEnvelope = Type.Object(
  { data: Type.Object({ ...members, files: Type.Array(MemoryFileSchema) }, { $id: 'MemoryWithFiles' }) },
  { $id: 'MemoryEnvelope' },
);

export type ListMemoriesQuery = Static<typeof ListMemoriesQuerySchema>;
export type MemoryQuery = Static<typeof MemoryQuerySchema>;

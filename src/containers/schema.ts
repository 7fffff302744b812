/** Wire schemas of containers. */
import { Type } from 'typebox';
import { nullable } from '../http/contract.ts';

const name = Type.String({ minLength: 1, maxLength: 40, pattern: '^[\\w-]+$' });

export const ContainerParams = Type.Object({ container_id: name });

export const ContainerFileParams = Type.Object({
  container_id: name,
  file_id: Type.String({ minLength: 1, maxLength: 200 }),
});

const MOST = 1_000;
export const DEFAULT_PAGE = 100;

export const ListContainerFilesQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST, default: DEFAULT_PAGE })),
  after: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'Id of the file that the page begins after' }),
  ),
});

export const ContainerFileSchema = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('container.file'),
    container_id: Type.String(),
    path: Type.String({ description: 'Below the folder `/workspace`' }),
    bytes: Type.Integer(),
    created_at: Type.Integer({ description: 'Unix seconds of the last change' }),
    source: Type.Literal('assistant'),
  },
  { $id: 'ContainerFile' },
);

export const ContainerFileListSchema = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(ContainerFileSchema),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
    has_more: Type.Boolean(),
    unsaved_at: Type.Optional(
      Type.Integer({ description: 'Unix seconds at which a request ended whose changes could not be stored' }),
    ),
  },
  { $id: 'ContainerFileList' },
);

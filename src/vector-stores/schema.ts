/** Wire schemas of `/vector_stores`, as OpenAI's SDKs know them. */
import { type Static, type TSchema, Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';

export const MOST_RESULTS = 50;
const MOST_QUERIES = 8;
export const LONGEST_QUERY = 4_096;
const MOST_BATCHED = 500;
const MOST_DAYS = 365;
const DEFAULT_PAGE = 20;

const id = Type.String({ minLength: 1, maxLength: 200 });

export const StoreParams = Type.Object({ vector_store_id: id });
export const EntryParams = Type.Object({ vector_store_id: id, file_id: id });
export const BatchParams = Type.Object({ vector_store_id: id, batch_id: id });

const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: DEFAULT_PAGE })),
  after: Type.Optional(Type.String({ maxLength: 200, description: 'The page begins after this id' })),
  before: Type.Optional(Type.String({ maxLength: 200, description: 'The page ends before this id' })),
  order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc' })),
};
const statuses = ['in_progress', 'completed', 'failed', 'cancelled'];

export const ListStoresQuery = Type.Object(page, closed);
export const ListEntriesQuery = Type.Object({ ...page, filter: Type.Optional(Type.Enum(statuses)) }, closed);

export const ContentQuery = Type.Object(
  { page: Type.Optional(Type.String({ pattern: '^\\d{1,6}$', description: '`next_page` of the page before' })) },
  closed,
);

export interface PageQuery {
  limit?: number;
  after?: string;
  before?: string;
  order?: 'asc' | 'desc';
  filter?: 'in_progress' | 'completed' | 'failed' | 'cancelled';
}

export function limitOf({ limit = DEFAULT_PAGE }: PageQuery): number {
  return limit;
}

const Metadata = Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 }), { maxProperties: 16 });

const AttributesSchema = Type.Record(
  Type.String({ minLength: 1, maxLength: 64 }),
  Type.Union([Type.String({ maxLength: 512 }), Type.Number(), Type.Boolean()]),
  { maxProperties: 16 },
);

const ExpiresAfter = Type.Object(
  { anchor: Type.Literal('last_active_at'), days: Type.Integer({ minimum: 1, maximum: MOST_DAYS }) },
  closed,
);

const StaticChunking = Type.Object(
  {
    max_chunk_size_tokens: Type.Integer({ minimum: 100, maximum: 4096 }),
    chunk_overlap_tokens: Type.Integer({ minimum: 0, description: 'At most half of `max_chunk_size_tokens`' }),
  },
  closed,
);

const Chunking = Type.Union(
  [
    Type.Object({ type: Type.Literal('auto') }, closed),
    Type.Object({ type: Type.Literal('static'), static: StaticChunking }, closed),
  ],
  { $id: 'VectorStoreChunkingStrategy', description: 'Default: chunks of 800 tokens that overlap by 400' },
);

export type ChunkingStrategy = Static<typeof Chunking>;

const optional = <T extends TSchema>(schema: T) => Type.Optional(nullable(schema));
const Name = Type.String({ maxLength: 256 });
const FileIds = Type.Array(id, { minItems: 1, maxItems: MOST_BATCHED });

export const CreateStore = Type.Object(
  {
    name: optional(Name),
    description: optional(Type.String({ maxLength: 512, description: 'Accepted and not stored' })),
    metadata: optional(Metadata),
    expires_after: optional(ExpiresAfter),
    file_ids: Type.Optional(Type.Array(id, { maxItems: MOST_BATCHED })),
    chunking_strategy: Type.Optional(Chunking),
  },
  { ...closed, $id: 'CreateVectorStore' },
);
export type CreateStore = Static<typeof CreateStore>;

export const UpdateStore = Type.Object(
  { name: optional(Name), metadata: optional(Metadata), expires_after: optional(ExpiresAfter) },
  { ...closed, $id: 'UpdateVectorStore' },
);
export type UpdateStore = Static<typeof UpdateStore>;

export const AddFile = Type.Object(
  { file_id: id, attributes: optional(AttributesSchema), chunking_strategy: Type.Optional(Chunking) },
  { ...closed, $id: 'AddVectorStoreFile' },
);
export type AddFile = Static<typeof AddFile>;

export const UpdateEntry = Type.Object(
  { attributes: nullable(AttributesSchema) },
  { ...closed, $id: 'UpdateVectorStoreFile' },
);
export type UpdateEntry = Static<typeof UpdateEntry>;

export const CreateBatch = Type.Object(
  {
    file_ids: Type.Optional(FileIds),
    files: Type.Optional(Type.Array(AddFile, { minItems: 1, maxItems: MOST_BATCHED })),
    attributes: optional(AttributesSchema),
    chunking_strategy: Type.Optional(Chunking),
  },
  { ...closed, $id: 'CreateVectorStoreFileBatch' },
);
export type CreateBatch = Static<typeof CreateBatch>;

const query = Type.String({ minLength: 1, maxLength: LONGEST_QUERY });

export const SearchStore = Type.Object(
  {
    query: Type.Union([query, Type.Array(query, { minItems: 1, maxItems: MOST_QUERIES })]),
    filters: Type.Optional(Type.Unsafe({ description: 'A comparison or a compound filter on attributes' })),
    max_num_results: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_RESULTS, default: 10 })),
    ranking_options: Type.Optional(Type.Unsafe({ type: 'object' })),
    rewrite_query: Type.Optional(Type.Boolean({ description: 'Queries are never rewritten: true is refused' })),
  },
  { ...closed, $id: 'SearchVectorStore' },
);

export interface SearchStore {
  query: string | string[];
  filters?: unknown;
  max_num_results?: number;
  ranking_options?: unknown;
  rewrite_query?: boolean;
}

const count = Type.Integer({ minimum: 0 });
const FileCounts = Type.Object({
  in_progress: count,
  completed: count,
  failed: count,
  cancelled: count,
  total: count,
});
const time = Type.Integer({ description: 'Unix seconds' });

export const Store = Type.Object(
  {
    id: Type.String({ description: '`svc_vs_...`' }),
    object: Type.Literal('vector_store'),
    created_at: time,
    name: Type.String(),
    usage_bytes: count,
    file_counts: FileCounts,
    status: Type.Enum(['expired', 'in_progress', 'completed']),
    expires_after: Type.Optional(ExpiresAfter),
    expires_at: nullable(time),
    last_active_at: time,
    metadata: Metadata,
  },
  { $id: 'VectorStore' },
);

export const EntrySchema = Type.Object(
  {
    id: Type.String({ description: 'Of the file' }),
    object: Type.Literal('vector_store.file'),
    created_at: time,
    vector_store_id: Type.String(),
    status: Type.Enum(statuses),
    last_error: nullable(
      Type.Object({ code: Type.Enum(['server_error', 'unsupported_file', 'invalid_file']), message: Type.String() }),
    ),
    usage_bytes: count,
    attributes: AttributesSchema,
    chunking_strategy: Type.Object({ type: Type.Literal('static'), static: StaticChunking }),
  },
  { $id: 'VectorStoreFile' },
);

export const BatchSchema = Type.Object(
  {
    id: Type.String({ description: '`svc_vsfb_...`' }),
    object: Type.Literal('vector_store.files_batch'),
    created_at: time,
    vector_store_id: Type.String(),
    status: Type.Enum(statuses),
    file_counts: FileCounts,
  },
  { $id: 'VectorStoreFileBatch' },
);

const deleted = (object: string, $id: string) =>
  Type.Object({ id: Type.String(), object: Type.Literal(object), deleted: Type.Literal(true) }, { $id });
export const StoreDeleted = deleted('vector_store.deleted', 'VectorStoreDeleted');
export const EntryDeleted = deleted('vector_store.file.deleted', 'VectorStoreFileDeleted');

const listOf = (schema: TSchema, $id: string) =>
  Type.Object(
    {
      object: Type.Literal('list'),
      data: Type.Array(schema),
      first_id: nullable(Type.String()),
      last_id: nullable(Type.String()),
      has_more: Type.Boolean(),
    },
    { $id },
  );
export const StoreList = listOf(Store, 'VectorStoreList');
export const EntryList = listOf(EntrySchema, 'VectorStoreFileList');

const text = Type.Object({ type: Type.Literal('text'), text: Type.String() });

export const EntryContent = Type.Object(
  {
    object: Type.Literal('vector_store.file_content.page'),
    data: Type.Array(text),
    has_more: Type.Boolean(),
    next_page: nullable(Type.String()),
  },
  { $id: 'VectorStoreFileContent' },
);

export const SearchResults = Type.Object(
  {
    object: Type.Literal('vector_store.search_results.page'),
    search_query: Type.Array(Type.String()),
    data: Type.Array(
      Type.Object({
        file_id: Type.String(),
        filename: Type.String(),
        score: Type.Number({ minimum: 0, maximum: 1 }),
        attributes: AttributesSchema,
        content: Type.Array(text),
      }),
    ),
    has_more: Type.Boolean(),
    next_page: nullable(Type.String()),
  },
  { $id: 'VectorStoreSearchResults' },
);

/** Wire schemas of files, in four shapes. */
import { Type } from 'typebox';
import { EXPIRY_SECONDS, PLAIN_EXPIRY_SECONDS } from './expiry.ts';
import { Empty, GoogleFile, GoogleFileList, googlePages } from './google/schema.ts';
import { VENDOR_TOKENS } from './vendor/names.ts';

const MAX_PAGE = 1_000;

const scope = {
  workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Default: the workspace of the key' })),
  provider: Type.Optional(
    Type.Enum(['openai', 'anthropic', ...VENDOR_TOKENS.keys()], {
      description: 'Files at a vendor, over a BYOK credential. `vendor_a` is anthropic, `vendor_b` is openai',
    }),
  ),
};

export const ScopeQuery = Type.Object(scope);

export const ListFilesQuery = Type.Object({
  ...scope,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: 100 })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: '`cursor` of the page before' })),
  after: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'As OpenAI clients page: an id' })),
  after_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'As Anthropic clients page: an id' }),
  ),
  page: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: '`next_page` of the page before, for newer Anthropic clients',
    }),
  ),
  ids: Type.Optional(
    Type.Array(Type.String({ maxLength: 200 }), {
      maxItems: 100,
      description: 'Only these files, in one page; ids without a file are left out',
    }),
  ),
  before_id: Type.Optional(Type.String({ maxLength: 200, description: 'Not supported' })),
  order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Only `asc` is supported' })),
  purpose: Type.Optional(Type.String({ maxLength: 100, description: 'Only files with this purpose' })),
  ...googlePages,
});

export const FileParams = Type.Object({ file_id: Type.String({ minLength: 1, maxLength: 200 }) });

export const PURPOSES = [
  'assistants',
  'batch',
  'fine-tune',
  'vision',
  'user_data',
  'evals',
  'assistants_output',
  'batch_output',
  'fine-tune-results',
] as const;

/** A field that is not one of these is refused. */
export const UploadForm = Type.Object({
  file: Type.String({ format: 'binary' }),
  purpose: Type.Optional(Type.Enum([...PURPOSES], { description: 'What OpenAI clients say; default `user_data`' })),
  'expires_after[anchor]': Type.Optional(Type.Literal('created_at')),
  'expires_after[seconds]': Type.Optional(
    Type.Integer({ ...EXPIRY_SECONDS, description: 'Default: 30 days for the purpose `batch`, otherwise never' }),
  ),
  expires_in_seconds: Type.Optional(
    Type.Integer({ ...PLAIN_EXPIRY_SECONDS, description: 'The same, as Anthropic clients say it' }),
  ),
});

const shape = Type.Optional(Type.String({ description: 'Which shape this is: `svc`, `openai` or `anthropic`' }));

const SvcFile = Type.Object(
  {
    _shape: shape,
    id: Type.String(),
    type: Type.Literal('file'),
    filename: Type.String(),
    mime_type: Type.String(),
    size_bytes: Type.Integer(),
    created_at: Type.String(),
    expires_at: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: 'In the shape `anthropic`; null: never' }),
    ),
    downloadable: Type.Boolean(),
  },
  { $id: 'File' },
);
const OpenaiFile = Type.Object(
  {
    _shape: shape,
    id: Type.String(),
    object: Type.Literal('file'),
    bytes: Type.Integer(),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    expires_at: Type.Optional(Type.Integer({ description: 'Unix seconds; absent if the file does not expire' })),
    filename: Type.String(),
    purpose: Type.String(),
    status: Type.Literal('processed'),
  },
  { $id: 'OpenaiFile' },
);

const ends = {
  has_more: Type.Boolean(),
  first_id: Type.Union([Type.String(), Type.Null()]),
  last_id: Type.Union([Type.String(), Type.Null()]),
};

export const FileReply = Type.Union([SvcFile, OpenaiFile]);
export const ShownFileReply = Type.Union([SvcFile, OpenaiFile, GoogleFile]);
const id = ($id: string) => ({ $id });
const cursor = Type.Optional(Type.Union([Type.String(), Type.Null()]));

export const FileListReply = Type.Union([
  Type.Object({ _shape: shape, data: Type.Array(SvcFile), ...ends, cursor, next_page: cursor }, id('FileList')),
  Type.Object(
    { _shape: shape, object: Type.Literal('list'), data: Type.Array(OpenaiFile), ...ends },
    id('OpenaiFileList'),
  ),
  GoogleFileList,
]);
export const FileDeletedReply = Type.Union([
  Type.Object({ _shape: shape, id: Type.String(), type: Type.Literal('file_deleted') }, id('FileDeleted')),
  Type.Object(
    { _shape: shape, id: Type.String(), object: Type.Literal('file'), deleted: Type.Literal(true) },
    id('OpenaiFileDeleted'),
  ),
  Empty,
]);

/** Wire schemas of the Files API of Gemini. */
import { Type } from 'typebox';

const MAX_PAGE = 1_000;
const open = { additionalProperties: true };

const common = {
  key: Type.Optional(Type.String({ description: 'The key, instead of a header' })),
  workspace_id: Type.Optional(Type.String({ format: 'uuid', description: 'Default: the workspace of the key' })),
};

export const ScopeQuery = Type.Object(common);

export const googlePages = {
  pageSize: Type.Optional(
    Type.Integer({ minimum: 0, maximum: MAX_PAGE, default: 10, description: "As Google's clients page" }),
  ),
  pageToken: Type.Optional(Type.String({ maxLength: 200, description: '`nextPageToken` of the page before' })),
};

export const ListQuery = Type.Object({ ...common, ...googlePages });

export const FileParams = Type.Object({ file: Type.String({ minLength: 1, maxLength: 200 }) });
export const UploadParams = Type.Object({ upload: Type.String({ minLength: 1, maxLength: 200 }) });

export const StartBody = Type.Object(
  {
    file: Type.Optional(
      Type.Object(
        {
          displayName: Type.Optional(Type.String({ description: 'At most 512 characters' })),
          mimeType: Type.Optional(Type.String({ description: 'The type is detected from the content' })),
        },
        open,
      ),
    ),
  },
  { ...open, $id: 'StartFileUpload' },
);

export const Chunk = Type.String({ format: 'binary' });

export const GoogleFile = Type.Object(
  {
    name: Type.String({ description: '`files/` and the id' }),
    displayName: Type.String(),
    mimeType: Type.String(),
    sizeBytes: Type.String(),
    createTime: Type.String(),
    updateTime: Type.String(),
    expirationTime: Type.Optional(Type.String({ description: 'Absent if the file does not expire' })),
    uri: Type.String({ description: 'For `fileData.fileUri`' }),
    downloadUri: Type.Optional(Type.String({ description: 'Of files that a tool or a batch made' })),
    state: Type.Literal('ACTIVE'),
    source: Type.Enum(['UPLOADED', 'GENERATED']),
  },
  { $id: 'GoogleFile' },
);

export const GoogleFileList = Type.Object(
  { files: Type.Optional(Type.Array(GoogleFile)), nextPageToken: Type.Optional(Type.String()) },
  { $id: 'GoogleFileList' },
);

export const UploadReply = Type.Object({ file: Type.Optional(GoogleFile) }, { $id: 'GoogleFileUpload' });
export const Empty = Type.Object({}, { $id: 'GoogleEmpty' });

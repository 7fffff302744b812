/** Wire schemas of stored responses, as OpenAI's SDKs know them. */
import { Type } from 'typebox';

export const ResponseParams = Type.Object({ response_id: Type.String({ minLength: 1, maxLength: 100 }) });

const open = { additionalProperties: true };

/** A stored response has everything that its request asked for. */
const include = Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { maxItems: 20, description: 'No effect' }));

export const GetResponseQuery = Type.Object({
  include,
  include_obfuscation: Type.Optional(Type.Boolean({ description: 'No effect: events are not padded' })),
  stream: Type.Optional(
    Type.Boolean({ description: 'The events of a streamed response in the background, then new ones' }),
  ),
  starting_after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_147_483_647,
      description: 'With `stream`: only events after this sequence number',
    }),
  ),
});

export const StoredResponseReply = Type.Object(
  {
    id: Type.String({ description: '`resp_...`' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    status: Type.Enum(['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'], {
      description:
        '`cancelled`: by its client, or its client left before the end. `failed`: also if the process that ran it has died',
    }),
    model: Type.String(),
    output: Type.Array(Type.Object({ type: Type.String() }, open)),
  },
  { ...open, $id: 'StoredResponse' },
);

export const ResponseDeleted = Type.Object(
  { id: Type.String(), object: Type.Literal('response'), deleted: Type.Literal(true) },
  { $id: 'ResponseDeleted' },
);

/** How items are listed. */
export const ItemsQuery = Type.Object({
  include,
  after: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'The id of an item' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc' })),
});

export const ItemQuery = Type.Object({ include });

export const ItemPage = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(Type.Object({ id: Type.String(), type: Type.String() }, open)),
    first_id: Type.Union([Type.String(), Type.Null()]),
    last_id: Type.Union([Type.String(), Type.Null()]),
    has_more: Type.Boolean(),
  },
  { $id: 'ResponseItemPage' },
);

/** Wire schemas of stored conversations, as OpenAI's SDKs know them. */
import { Type } from 'typebox';
import { closed, nullable } from '../../http/contract.ts';

const id = Type.String({ minLength: 1, maxLength: 200 });

export const ConversationParams = Type.Object({ conversation_id: id });
export const ItemParams = Type.Object({ conversation_id: id, item_id: id });

const Metadata = Type.Record(Type.String(), Type.String({ maxLength: 512 }), { maxProperties: 16 });
const Items = Type.Array(Type.Object({ type: Type.Optional(Type.String()) }, { additionalProperties: true }), {
  maxItems: 20,
  description: 'Items as in `input` of `POST /responses`',
});

export const CreateConversation = Type.Object(
  { items: Type.Optional(nullable(Items)), metadata: Type.Optional(nullable(Metadata)) },
  { ...closed, $id: 'CreateConversation' },
);

export const UpdateConversation = Type.Object(
  { metadata: nullable(Metadata) },
  { ...closed, $id: 'UpdateConversation' },
);

export const CreateItems = Type.Object({ items: Items }, { ...closed, $id: 'CreateConversationItems' });

export const Conversation = Type.Object(
  {
    id: Type.String({ description: '`conv_...`' }),
    object: Type.Literal('conversation'),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    metadata: Metadata,
  },
  { $id: 'Conversation' },
);

export const ConversationDeleted = Type.Object(
  { id: Type.String(), object: Type.Literal('conversation.deleted'), deleted: Type.Literal(true) },
  { $id: 'ConversationDeleted' },
);

export const ConversationItem = Type.Object(
  { id: Type.String(), type: Type.String() },
  { additionalProperties: true, $id: 'ConversationItem' },
);

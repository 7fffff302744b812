/** Wire schemas of `GET /audit`, a Gatehouse extension. */
import { type Static, Type } from 'typebox';
import { closed } from '../http/contract.ts';

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 256, description }));
const Nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const ActorType = Type.Union(
  [
    Type.Literal('key'),
    Type.Literal('scim'),
    Type.Literal('operator'),
    Type.Literal('sign_in'),
    Type.Literal('gateway'),
  ],
  {
    description: 'A key, an identity provider, the operator on the machine, a person signing in, or the gateway itself',
  },
);

export const AuditQuerySchema = Type.Object(
  {
    action: text('Such as `key.created`'),
    resource_type: text('Such as `key`'),
    resource_id: text('Id of the resource; the hash for a key'),
    actor: text('Hash of the key, or id (`user_...`) of the member, that made the change'),
    actor_type: Type.Optional(ActorType),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
    start: text('Changes at this time or later, `2026-01-31T00:00:00Z`'),
    end: text('Changes before this time'),
    cursor: Type.Optional(Type.String({ pattern: '^[0-9]{1,18}$', description: '`next_cursor` of the previous page' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
  },
  closed,
);

const State = (description: string) =>
  Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], { description });

const AuditEntrySchema = Type.Object(
  {
    id: Type.String(),
    created_at: Type.String(),
    action: Type.String(),
    resource_type: Type.String(),
    resource_id: Type.String(),
    workspace_id: Nullable('The workspace of the resource'),
    actor: Type.Object({
      type: ActorType,
      key_hash: Nullable('SHA-256 of the key'),
      key_label: Nullable('The key, masked'),
      user_id: Nullable('The member who created the key or signed in'),
    }),
    request_id: Nullable('Value of the response header `X-Request-Id`'),
    source_address: Nullable("The client's address as the trusted proxies report it"),
    before: State('The members that changed; null for a creation'),
    after: State('The members that changed; null for a deletion'),
  },
  { $id: 'AuditEntry' },
);

export const AuditReplySchema = Type.Object(
  {
    data: Type.Array(AuditEntrySchema),
    has_more: Type.Boolean(),
    next_cursor: Nullable('Cursor of the next page; null on the last one'),
  },
  { $id: 'AuditEntries' },
);

export type AuditQuery = Static<typeof AuditQuerySchema>;
export type AuditEntry = Static<typeof AuditEntrySchema>;

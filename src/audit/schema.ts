/** Wire schemas of `GET /audit`, which is an operation of our own. */
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
  { description: 'A key, an identity provider, the operator at the machine, who signed in, or the gateway by itself' },
);

export const AuditQuerySchema = Type.Object(
  {
    action: text('Such as `key.created`'),
    resource_type: text('Such as `key`'),
    resource_id: text('Of a key its hash'),
    actor: text('Hash of the key, or id of the member (`user_...`), that made the change'),
    actor_type: Type.Optional(ActorType),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
    start: text('Changes at this time or later, `2026-01-31T00:00:00Z`'),
    end: text('Changes before this time'),
    cursor: Type.Optional(Type.String({ pattern: '^[0-9]{1,18}$', description: '`next_cursor` of the page before' })),
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
    workspace_id: Nullable('The workspace that the resource belongs to'),
    actor: Type.Object({
      type: ActorType,
      key_hash: Nullable('SHA-256 of the key'),
      key_label: Nullable('The key, masked'),
      user_id: Nullable('The member who made the key, or who signed in'),
    }),
    request_id: Nullable('As the header `X-Request-Id` of the answer'),
    source_address: Nullable('Where the client was, as the trusted proxies say'),
    before: State('null for what is new; of a change the members that differ'),
    after: State('null for what is gone; of a change the members that differ'),
  },
  { $id: 'AuditEntry' },
);

export const AuditReplySchema = Type.Object(
  {
    data: Type.Array(AuditEntrySchema),
    has_more: Type.Boolean(),
    next_cursor: Nullable('For the next page; null on the last one'),
  },
  { $id: 'AuditEntries' },
);

export type AuditQuery = Static<typeof AuditQuerySchema>;
export type AuditEntry = Static<typeof AuditEntrySchema>;

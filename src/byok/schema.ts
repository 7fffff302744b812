/** Wire schemas of BYOK credentials; validation, static types and the OpenAPI document derive from them. */
import { type Static, Type } from 'typebox';
import { closed, listOf, nullable, pageMembers } from '../http/contract.ts';

export { DeletedEnvelope } from '../http/contract.ts';

const MAX_LISTED = 100;
const MAX_CREDENTIAL_LENGTH = 16_384;

const CredentialSchema = Type.String({
  minLength: 1,
  maxLength: MAX_CREDENTIAL_LENGTH,
  writeOnly: true,
  description: 'The secret key; for some clouds a JSON document. It is stored encrypted and never shown',
});
const ProviderSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'Id of a configured provider, or the common name of a service such as google-vertex',
});
const list = (item: Type.TString, minItems = 0) =>
  Type.Optional(nullable(Type.Array(item, { minItems, maxItems: MAX_LISTED, description: 'null: all' })));

const writable = {
  name: Type.Optional(nullable(Type.String({ maxLength: 255 }))),
  disabled: Type.Optional(Type.Boolean()),
  is_fallback: Type.Optional(Type.Boolean({ description: 'Used after the other credentials; excludes is_byok_only' })),
  is_required: Type.Optional(
    Type.Boolean({ description: "Models that it may be used for never go over this gateway's own credentials" }),
  ),
  is_byok_only: Type.Optional(
    Type.Boolean({ description: "The provider is never asked over this gateway's own credentials" }),
  ),
  declared_zdr: Type.Optional(
    nullable(
      Type.Boolean({
        description: 'Whether the account has zero data retention; null means as known for the provider',
      }),
    ),
  ),
  allowed_models: list(Type.String({ minLength: 1, maxLength: 400 })),
  allowed_api_key_hashes: list(Type.String({ pattern: '^[a-f0-9]{64}$' }), 1),
  allowed_user_ids: list(Type.String({ minLength: 1, maxLength: 200 })),
};

export const CreateByokCredentialSchema = Type.Object(
  {
    key: CredentialSchema,
    provider: ProviderSchema,
    workspace_id: Type.Optional(
      nullable(
        Type.String({ format: 'uuid', description: 'Default: the default workspace; null means all workspaces' }),
      ),
    ),
    ...writable,
  },
  { ...closed, $id: 'CreateByokKey' },
);
export const UpdateByokCredentialSchema = Type.Object(
  { key: Type.Optional(CredentialSchema), ...writable },
  { ...closed, $id: 'UpdateByokKey' },
);

export const ListByokCredentialsQuerySchema = Type.Object(
  {
    ...pageMembers,
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
    provider: Type.Optional(ProviderSchema),
  },
  closed,
);

export const ByokCredentialParamsSchema = Type.Object({ id: Type.String({ description: 'UUID of the credential' }) });

const ByokCredentialSchema = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    workspace_id: nullable(Type.String({ description: 'null means all workspaces' })),
    name: nullable(Type.String()),
    label: Type.String({ description: 'The credential, masked' }),
    sort_order: Type.Integer({ description: 'Order of use among the credentials of a provider' }),
    disabled: Type.Boolean(),
    is_fallback: Type.Boolean(),
    is_required: Type.Boolean(),
    is_byok_only: Type.Boolean(),
    declared_zdr: nullable(Type.Boolean()),
    allowed_models: nullable(Type.Array(Type.String())),
    allowed_api_key_hashes: nullable(Type.Array(Type.String())),
    allowed_user_ids: nullable(Type.Array(Type.String())),
    created_at: Type.String(),
  },
  { $id: 'ByokKey' },
);

export const ByokCredentialEnvelope = Type.Object({ data: ByokCredentialSchema }, { $id: 'ByokKeyEnvelope' });
export const ByokCredentialListEnvelope = listOf(ByokCredentialSchema);

export type CreateByokCredentialBody = Static<typeof CreateByokCredentialSchema>;
export type UpdateByokCredentialBody = Static<typeof UpdateByokCredentialSchema>;
export type ListByokCredentialsQuery = Static<typeof ListByokCredentialsQuerySchema>;
export type ByokCredentialReply = Static<typeof ByokCredentialSchema>;

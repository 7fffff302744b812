/** Wire schemas of vaults; validation, static types and the OpenAPI document derive from them. */
import { type Static, Type } from 'typebox';
import { closed } from '../http/contract.ts';

export const DEFAULT_PAGE = 100;
const MOST_HOSTS = 100;
/** With the trailing dot. */
const LONGEST_HOST = 254;
const MOST_COPIED = 100;
const LONGEST_VALUE = 65_536;

export const SecretParams = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: '^(?!.*__)[a-z]([a-z0-9_]*[a-z0-9])?$',
    description:
      'Lower-case letters, digits and single underscores; begins with a letter, does not end with an underscore',
  }),
});

const internId = Type.String({ minLength: 1 });
export const InternParams = Type.Object({ internId });
export const InternSecretParams = Type.Object({ internId, ...SecretParams.properties });

export const ListSecretsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: DEFAULT_PAGE })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, default: 0 })),
  },
  closed,
);

export const StoreSecretBody = Type.Object(
  {
    value: Type.String({
      minLength: 1,
      maxLength: LONGEST_VALUE,
      writeOnly: true,
      description: 'Stored encrypted and never shown',
    }),
    hosts: Type.Array(Type.String({ minLength: 1, maxLength: LONGEST_HOST }), {
      minItems: 1,
      maxItems: MOST_HOSTS,
      description:
        'Exact DNS names that the secret may be sent to. They are stored in lower case, without a trailing dot, as A-labels',
    }),
  },
  { ...closed, $id: 'VaultSecretWriteRequest' },
);

const SecretSchema = Type.Object(
  {
    name: Type.String(),
    hosts: Type.Array(Type.String(), { description: 'As stored' }),
    fingerprint: Type.String({
      description:
        "`sha256:` and the HMAC of the value with the vault's own key, in hexadecimal: equal for equal values in one vault",
    }),
    created_at: Type.String({ description: 'When the name was first stored, ISO 8601' }),
  },
  { $id: 'VaultSecret' },
);

export const SecretEnvelope = Type.Object({ data: SecretSchema }, { $id: 'VaultSecretResponse' });
export const SecretListEnvelope = Type.Object(
  { data: Type.Array(SecretSchema), has_more: Type.Boolean({ description: 'There are more after this page' }) },
  { $id: 'VaultSecretListResponse' },
);

export const CopySecretsBody = Type.Object(
  {
    names: Type.Array(SecretParams.properties.name, {
      minItems: 1,
      maxItems: MOST_COPIED,
      description: 'Names of secrets of the workspace, without duplicates',
    }),
  },
  { ...closed, $id: 'VaultSecretCopyRequest' },
);

export const CopiedSecrets = Type.Object({ data: Type.Array(SecretSchema) }, { $id: 'VaultSecretCopyResponse' });

export type CopySecrets = Static<typeof CopySecretsBody>;
export type ListSecrets = Static<typeof ListSecretsQuery>;
export type StoreSecret = Static<typeof StoreSecretBody>;
export type SecretReply = Static<typeof SecretSchema>;

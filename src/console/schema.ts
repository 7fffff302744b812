/** Wire schemas of the console's sessions. */
import { type Static, Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';

const SecretSchema = Type.String({ minLength: 1, maxLength: 512 });

export const SignInSchema = Type.Object(
  {
    key: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'A management key' })),
    code: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'The code of a one-time link' })),
  },
  { ...closed, $id: 'ConsoleSignIn', description: 'Exactly one of `key` and `code`' },
);

export const InferenceKeySchema = Type.Object(
  { key: nullable(SecretSchema) },
  { ...closed, $id: 'ConsoleInferenceKey', description: 'An inference key; null: none' },
);

const SessionKeySchema = Type.Object({
  hash: Type.String(),
  label: Type.String({ description: 'The key, masked' }),
  name: Type.String(),
  user_id: nullable(Type.String()),
  workspace_id: nullable(Type.String()),
});

export const SessionEnvelope = Type.Object(
  {
    data: Type.Object({
      version: Type.String({ description: 'Version of the gateway' }),
      session: nullable(
        Type.Object({
          organization_id: Type.String(),
          management_key: SessionKeySchema,
          inference_key: nullable(SessionKeySchema),
          expires_at: Type.String(),
        }),
      ),
      oidc: nullable(
        Type.Object(
          { name: Type.String({ description: 'For the button' }) },
          { description: 'The identity provider that people can sign in with; null if none is configured' },
        ),
      ),
      sign_out_url: Type.Optional(
        Type.String({
          description: 'URL to open after signing out of the console, which signs out of the identity provider too',
        }),
      ),
    }),
  },
  { $id: 'ConsoleSession' },
);

export const OidcBegunEnvelope = Type.Object(
  { data: Type.Object({ url: Type.String({ description: 'The URL that the browser must open' }) }) },
  { $id: 'ConsoleOidcSignIn' },
);

const FromProvider = Type.Optional(Type.String({ maxLength: 8_192 }));

/** As RFC 6749 and RFC 9207 name them. Providers add others. */
export const OidcCallbackQuery = Type.Object({
  ...{ code: FromProvider, state: FromProvider, iss: FromProvider },
  ...{ error: FromProvider, error_description: FromProvider },
});

export type OidcCallback = Static<typeof OidcCallbackQuery>;
export type SignInBody = Static<typeof SignInSchema>;
export type InferenceKeyBody = Static<typeof InferenceKeySchema>;
export type SessionReply = Static<typeof SessionEnvelope>['data'];

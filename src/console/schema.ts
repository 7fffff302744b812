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
    }),
  },
  { $id: 'ConsoleSession' },
);

export type SignInBody = Static<typeof SignInSchema>;
export type InferenceKeyBody = Static<typeof InferenceKeySchema>;
export type SessionReply = Static<typeof SessionEnvelope>['data'];

/** Wire schemas of sign-in: OAuth with PKCE. */
import { type Static, Type } from 'typebox';
import { closed } from '../http/contract.ts';

const MethodSchema = Type.Union([Type.Literal('S256'), Type.Literal('plain')]);
const CodeSchema = Type.String({ minLength: 1, maxLength: 512 });

export const AuthCodeSchema = Type.Object(
  {
    callback_url: Type.String({ minLength: 1, maxLength: 2_048 }),
    code_challenge: Type.Optional(Type.String({ minLength: 43, maxLength: 128, pattern: '^[A-Za-z0-9._~-]*$' })),
    code_challenge_method: Type.Optional(MethodSchema),
    key_label: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    limit: Type.Optional(Type.Number({ exclusiveMinimum: 0, description: 'US dollars' })),
    usage_limit_type: Type.Optional(
      Type.Union([Type.Literal('daily'), Type.Literal('weekly'), Type.Literal('monthly')]),
    ),
    expires_at: Type.Optional(
      Type.Union([Type.String({ description: 'ISO 8601 with seconds and time zone' }), Type.Null()]),
    ),
    workspace_id: Type.Optional(Type.String({ format: 'uuid' })),
  },
  { ...closed, $id: 'CreateAuthCode' },
);

/** Query of the consent page. */
export const ConsentQuery = Type.Object({
  ...AuthCodeSchema.properties,
  state: Type.Optional(Type.String({ maxLength: 1_024, description: 'Returned to the callback' })),
});

export const ConsentForm = Type.Object(
  {
    request: Type.String({ description: "The page's request" }),
    token: Type.String({ description: 'Proves that the form comes from the page' }),
    key: Type.String({ description: 'A management key' }),
    decision: Type.Union([Type.Literal('allow'), Type.Literal('deny')]),
  },
  { $id: 'ConsentForm' },
);

export const AuthCodeEnvelope = Type.Object(
  {
    data: Type.Object({
      id: Type.String({ description: 'The code, shown only once' }),
      app_id: Type.Integer({ description: 'Equal for all codes of one callback host' }),
      created_at: Type.String(),
    }),
  },
  { $id: 'AuthCode' },
);

export const ExchangeSchema = Type.Object(
  {
    code: CodeSchema,
    code_verifier: Type.Optional(
      Type.String({
        maxLength: 256,
        description: '43 to 128 characters of A-Z a-z 0-9 - . _ ~ (RFC 7636); required with a challenge',
      }),
    ),
    code_challenge_method: Type.Optional(Type.Union([MethodSchema, Type.Null()])),
  },
  { ...closed, $id: 'ExchangeAuthCode' },
);

export const ExchangeReply = Type.Object(
  {
    key: Type.String({ description: 'An inference key, shown only once' }),
    user_id: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: 'ExchangedKey' },
);

export type AuthCodeBody = Static<typeof AuthCodeSchema>;
export type ConsentQueryBody = Static<typeof ConsentQuery>;
export type ExchangeBody = Static<typeof ExchangeSchema>;

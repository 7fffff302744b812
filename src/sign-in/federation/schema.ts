/** Wire schemas of token exchange. */
import { Type } from 'typebox';

export const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange';
export const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token';
export const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt';

export const TokenExchangeForm = Type.Object(
  {
    federation_policy_id: Type.String({
      description: 'Id of a policy in the section `federation` of the configuration',
    }),
    grant_type: Type.Literal(GRANT_TYPE),
    requested_token_type: Type.Optional(Type.Literal(ACCESS_TOKEN_TYPE)),
    scope: Type.Optional(Type.Literal('inference')),
    subject_token: Type.String({ description: 'The JWT of an identity provider' }),
    subject_token_type: Type.Literal(JWT_TYPE),
  },
  { $id: 'TokenExchange' },
);

export const TokenExchangeReply = Type.Object(
  {
    access_token: Type.String({ description: 'Bearer token for inference' }),
    expires_in: Type.Integer({ minimum: 1, maximum: 900, description: 'Seconds' }),
    issued_token_type: Type.Literal(ACCESS_TOKEN_TYPE),
    scope: Type.String(),
    token_type: Type.Literal('Bearer'),
  },
  { $id: 'AccessToken' },
);

export const OAuthErrorReply = Type.Object(
  {
    error: Type.String({ description: 'Error code of RFC 6749, 5.2, or RFC 8693, 2.2.2' }),
    error_description: Type.String(),
  },
  { $id: 'OAuthError' },
);

export const JwksReply = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        alg: Type.Literal('ES256'),
        crv: Type.Literal('P-256'),
        kid: Type.String(),
        kty: Type.Literal('EC'),
        use: Type.Literal('sig'),
        x: Type.String(),
        y: Type.String(),
      }),
    ),
  },
  { $id: 'Jwks' },
);

/** The operations of token exchange, `POST /oauth/token` and `GET /oauth/jwks`. */
import type { Caller } from '../../access/index.ts';
import { ANYONE } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import { SCOPE } from './access-tokens.ts';
import type { Federation } from './federation.ts';
import { encodeOAuthError, UNKEPT } from './oauth-error.ts';
import * as schema from './schema.ts';
import { ALGORITHM } from './signing-keys.ts';

/** A subject token of maximum length and the other parameters. */
const MOST_FORM_BYTES = 20 * 1024;
const TAG = 'Sign-in';
/** New keys are rare, and a token with an unknown key makes its verifier fetch again. */
const KEPT = Object.freeze({ 'Cache-Control': 'public, max-age=300' });

/** @param federation called while handling a request */
export function federationOperations(federation: () => Federation): Operation<Caller>[] {
  return [createOauthToken(federation), listOauthJwks(federation)];
}

function createOauthToken(federation: () => Federation): Operation<Caller> {
  return {
    id: 'createOauthToken',
    method: 'POST',
    path: '/oauth/token',
    summary: 'Exchange the JWT of an identity provider for an access token (RFC 8693)',
    tag: TAG,
    access: ANYONE,
    body: { schema: schema.TokenExchangeForm, form: true, maxBytes: MOST_FORM_BYTES },
    replies: ok('The access token', schema.TokenExchangeReply),
    errors: [429],
    encodeError: encodeOAuthError,
    errorSchema: schema.OAuthErrorReply,
    async handle(exchange) {
      const { form = new URLSearchParams(), clientAddress, requestId } = exchange;
      const { token, expiresIn } = await federation().exchanges.exchange(form, clientAddress, requestId);
      const issued = { issued_token_type: schema.ACCESS_TOKEN_TYPE, token_type: 'Bearer', scope: SCOPE };
      exchange.reply(200, { access_token: token, expires_in: expiresIn, ...issued }, { ...UNKEPT });
    },
  };
}

function listOauthJwks(federation: () => Federation): Operation<Caller> {
  return {
    id: 'listOauthJwks',
    method: 'GET',
    path: '/oauth/jwks',
    summary: 'List the public keys of access tokens (RFC 7517)',
    tag: TAG,
    access: ANYONE,
    replies: ok('The current key, and former keys whose tokens may still be valid', schema.JwksReply),
    async handle(exchange) {
      const keys = await federation().keys.all();
      const shown = keys.map(({ id, jwk }) => ({ ...jwk, kid: id, alg: ALGORITHM, use: 'sig' }));
      exchange.reply(200, { keys: shown }, { ...KEPT });
    },
  };
}

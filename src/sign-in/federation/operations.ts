/** The operations of token exchange (wire/keys.md, "POST /oauth/token" and "GET /oauth/jwks"). */
import type { Caller } from '../../access/index.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import { SCOPE } from './access-tokens.ts';
import type { Federation } from './federation.ts';
import { encodeOAuthError, UNKEPT } from './oauth-error.ts';
import * as schema from './schema.ts';
import { ALGORITHM } from './signing-keys.ts';

/** A subject token of the greatest length, and all else that belongs to it. */
const MOST_FORM_BYTES = 20 * 1024;
const TAG = 'Sign-in';
/** New keys are few, and a token of one that is not known yet makes its reader ask again. */
const KEPT = Object.freeze({ 'Cache-Control': 'public, max-age=300' });

/** @param federation asked for when a request comes */
export function federationOperations(federation: () => Federation): Operation<Caller>[] {
  return [createOauthToken(federation), listOauthJwks(federation)];
}

function createOauthToken(federation: () => Federation): Operation<Caller> {
  return {
    id: 'createOauthToken',
    method: 'POST',
    path: '/oauth/token',
    summary: 'An access token for the JWT of an identity provider (RFC 8693)',
    tag: TAG,
    access: 'none',
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
    summary: 'The public keys of access tokens (RFC 7517)',
    tag: TAG,
    access: 'none',
    replies: ok('The present key, and those whose tokens may live still', schema.JwksReply),
    async handle(exchange) {
      const keys = await federation().keys.all();
      const shown = keys.map(({ id, jwk }) => ({ ...jwk, kid: id, alg: ALGORITHM, use: 'sig' }));
      exchange.reply(200, { keys: shown }, { ...KEPT });
    },
  };
}

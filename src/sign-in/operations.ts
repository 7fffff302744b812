/** The operations of sign-in: OAuth with PKCE. */
import type { IncomingHttpHeaders } from 'node:http';
import { type Caller, checkKind, checkNewKey, isToken } from '../access/index.ts';
import { type Author, authorOf } from '../audit/index.ts';
import { GatewayError } from '../base/errors.ts';
import { ANYONE, MANAGEMENT } from '../http/access-rule.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { type CodeParts, createCode, exchangeCode } from './codes.ts';
import type { Federation } from './federation/federation.ts';
import { federationOperations } from './federation/operations.ts';
import { FormSealer, nonceOf } from './form-seal.ts';
import { consentPage, pageHeaders, problemPage } from './page.ts';
import { readAuthRequest } from './request.ts';
import * as schema from './schema.ts';

export interface SignInParts extends CodeParts {
  authenticate(headers: IncomingHttpHeaders): Caller | Promise<Caller>;
  federation: Federation;
}

export function signInOperations(parts: SignInParts): Operation<Caller>[] {
  const sealer = new FormSealer(() => parts.database);
  return [
    ...[showConsent(parts, sealer), takeConsent(parts, sealer), createAuthCode(parts), exchangeAuthCode(parts)],
    ...federationOperations(() => parts.federation),
  ];
}

const html = { 200: { description: 'An HTML page', contentType: 'text/html' } };
const MOST_FORM_BYTES = 16 * 1024;

function showConsent(parts: SignInParts, sealer: FormSealer): Operation<Caller> {
  return {
    id: 'showConsent',
    method: 'GET',
    path: '/auth',
    root: true,
    summary: 'Show the consent page on which a person authorizes an application',
    tag: 'Sign-in',
    access: ANYONE,
    query: schema.ConsentQuery,
    replies: html,
    errorPages: true,
    async handle(exchange) {
      const query = exchange.query as schema.ConsentQueryBody;
      try {
        const request = readAuthRequest(query);
        const seal = await sealer.seal(
          query,
          parts.clock.now(),
          exchange.protocol === 'https',
          nonceOf(exchange.headers.cookie),
        );
        answer(exchange, 200, consentPage({ request, ...seal }), pageHeaders(request.callback), seal.cookie);
      } catch (error) {
        if (!(error instanceof GatewayError) || error.status >= 500) throw error;
        answer(exchange, error.status, problemPage(error.message), pageHeaders());
      }
    },
  };
}

function takeConsent(parts: SignInParts, sealer: FormSealer): Operation<Caller> {
  return {
    id: 'takeConsent',
    method: 'POST',
    path: '/auth',
    root: true,
    summary: 'Submit the consent page; redirects to the callback with a code',
    tag: 'Sign-in',
    access: ANYONE,
    body: { schema: schema.ConsentForm, form: true, maxBytes: MOST_FORM_BYTES },
    errors: [401, 403],
    errorPages: true,
    replies: {
      ...html,
      303: {
        description: 'Redirect to the callback, with `code` or with `error=access_denied`',
        contentType: 'text/html',
        headers: { Location: 'The callback' },
      },
    },
    async handle(exchange) {
      const { form, headers, requestId, clientAddress, startedAt } = exchange;
      const field = (name: string) => form?.get(name) ?? '';
      const now = parts.clock.now();
      const nonce = nonceOf(headers.cookie);
      // Trust browsers that report the origin of a form; the cookie protects the others.
      const site = headers['sec-fetch-site'];
      const foreign = site !== undefined && site !== 'same-origin';
      const query = foreign ? undefined : await sealer.open(field('request'), field('token'), nonce, now);
      if (query === undefined) {
        const problem = 'The form does not come from a recent page of this gateway. Start again.';
        answer(exchange, 403, problemPage(problem), pageHeaders());
        return;
      }
      const request = readAuthRequest(query);
      const callback = new URL(request.callback);
      if (query.state !== undefined) callback.searchParams.set('state', query.state);
      if (field('decision') !== 'allow') {
        callback.searchParams.set('error', 'access_denied');
        redirect(exchange, callback, request.callback);
        return;
      }
      try {
        const caller = await managerOf(parts, field('key'));
        await checkNewKey(parts.database, caller.organizationId, request.key, now);
        const author = authorOf({ requestId, clientAddress, startedAt, caller });
        const { code } = await createCode(parts, caller, request, author);
        callback.searchParams.set('code', code);
      } catch (error) {
        if (!(error instanceof GatewayError) || error.status >= 500) throw error;
        const seal = await sealer.seal(query, now, exchange.protocol === 'https', nonce);
        const body = consentPage({ request, ...seal, problem: error.message });
        answer(exchange, error.status, body, pageHeaders(request.callback), seal.cookie);
        return;
      }
      redirect(exchange, callback, request.callback);
    },
  };
}

/** A management key may create keys, so it may authorize an application. */
async function managerOf({ authenticate }: SignInParts, key: string): Promise<Caller> {
  if (!isToken(key)) throw new GatewayError('authentication', 'Paste a management key.');
  const caller = await authenticate({ authorization: `Bearer ${key}` });
  checkKind(caller, MANAGEMENT.kinds);
  return caller;
}

function createAuthCode(parts: SignInParts): Operation<Caller> {
  return {
    id: 'createAuthKeysCode',
    method: 'POST',
    path: '/auth/keys/code',
    summary: 'Create an authorization code without the consent page',
    tag: 'Sign-in',
    access: MANAGEMENT,
    body: { schema: schema.AuthCodeSchema },
    replies: {
      200: { description: 'The code. It can be exchanged once and expires soon', schema: schema.AuthCodeEnvelope },
    },
    async handle(exchange) {
      const request = readAuthRequest(exchange.body as schema.AuthCodeBody);
      await checkNewKey(parts.database, exchange.caller.organizationId, request.key, parts.clock.now());
      const { code, appId, createdAt } = await createCode(parts, exchange.caller, request, authorOf(exchange));
      exchange.reply(200, { data: { id: code, app_id: appId, created_at: createdAt.toISOString() } });
    },
  };
}

function exchangeAuthCode(parts: SignInParts): Operation<Caller> {
  return {
    id: 'exchangeAuthCodeForAPIKey',
    method: 'POST',
    path: '/auth/keys',
    summary: 'Exchange an authorization code for an API key',
    tag: 'Sign-in',
    access: ANYONE,
    body: { schema: schema.ExchangeSchema },
    errors: [403],
    replies: { 200: { description: 'The key', schema: schema.ExchangeReply } },
    async handle(exchange) {
      const { requestId, clientAddress = null, startedAt } = exchange;
      const sign = (organizationId: string, userId: string | null): Author => ({
        ...{ organizationId, type: 'sign_in', keyHash: null, keyLabel: null, userId, requestId },
        ...{ sourceAddress: clientAddress, at: startedAt },
      });
      const { token, userId } = await exchangeCode(parts, exchange.body as schema.ExchangeBody, sign);
      exchange.reply(200, { key: token, user_id: userId }, { 'Cache-Control': 'no-store' });
    },
  };
}

function answer(
  { response }: Exchange<Caller>,
  status: number,
  body: string,
  headers: Record<string, string>,
  cookie?: string,
): void {
  const length = String(Buffer.byteLength(body));
  response.writeHead(status, { ...headers, 'Content-Length': length, ...(cookie && { 'Set-Cookie': cookie }) });
  response.end(body);
}

function redirect({ response }: Exchange<Caller>, to: URL, callback: URL): void {
  response.writeHead(303, { ...pageHeaders(callback), Location: to.href, 'Content-Length': '0' });
  response.end();
}

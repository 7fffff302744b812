/** The operations of the console: its files, and the session that its browser signs in with. */
import { Type } from 'typebox';
import type { Caller } from '../access/index.ts';
import { ANYONE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { ConsoleFiles } from './files.ts';
import type { OidcSignIn } from './oidc/sign-in.ts';
import * as schema from './schema.ts';
import type { ConsoleSessions, SignedIn } from './sessions.ts';

export interface ConsoleParts {
  sessions: ConsoleSessions;
  oidc: OidcSignIn;
  files: ConsoleFiles;
  /** Of the gateway. */
  version: string;
}

const common = { tag: 'Console', access: ANYONE, root: true } as const;
const NO_STORE = { 'Cache-Control': 'no-store' };

/** Reads `parts` only while handling a request. */
export function consoleOperations(parts: ConsoleParts): Operation<Caller>[] {
  return [...fileOperations(parts), ...sessionOperations(parts), ...oidcOperations(parts)];
}

function fileOperations(parts: ConsoleParts): Operation<Caller>[] {
  return [
    {
      ...common,
      id: 'openConsole',
      method: 'GET',
      path: '/console',
      summary: 'Redirect to the console',
      replies: { 302: { description: 'Redirect', headers: { Location: '`console/`' } } },
      handle({ response }) {
        response.writeHead(302, { Location: 'console/', 'Content-Length': '0', ...NO_STORE });
        response.end();
      },
    },
    {
      ...common,
      id: 'getConsole',
      method: 'GET',
      path: '/console/',
      summary: 'The web console',
      replies: {
        200: { description: 'The page', contentType: 'text/html' },
        304: { description: 'Unchanged since the `ETag` in `If-None-Match`' },
      },
      errors: [404],
      handle: (exchange) => parts.files.answer(exchange, 'index.html'),
    },
    {
      ...common,
      id: 'getConsoleFile',
      method: 'GET',
      path: '/console/{file}',
      summary: 'A script or style of the console',
      params: Type.Object({ file: Type.String() }),
      replies: {
        200: { description: 'The file', contentType: 'text/javascript', texts: ['text/css', 'image/svg+xml'] },
        304: { description: 'Unchanged since the `ETag` in `If-None-Match`' },
      },
      errors: [404],
      handle: (exchange) => parts.files.answer(exchange, exchange.params['file'] ?? ''),
    },
  ];
}

function sessionOperations(parts: ConsoleParts): Operation<Caller>[] {
  const path = '/console/session';
  const reply = (exchange: Exchange<Caller>, signedIn: SignedIn | undefined, headers = {}) =>
    exchange.reply(200, { data: sessionReply(signedIn, parts) }, { ...NO_STORE, ...headers });
  return [
    {
      ...common,
      id: 'getConsoleSession',
      method: 'GET',
      path,
      summary: 'Show who is signed in to the console',
      replies: ok('The session that the cookie names; null if there is none', schema.SessionEnvelope),
      errors: [401, 503],
      handle: async (exchange) => reply(exchange, await parts.sessions.current(exchange)),
    },
    {
      ...common,
      id: 'createConsoleSession',
      method: 'POST',
      path,
      summary: 'Sign in to the console with a management key or the code of a one-time link',
      body: { schema: schema.SignInSchema },
      replies: ok('Signed in; the session is in a cookie', schema.SessionEnvelope),
      errors: [401, 403, 503],
      async handle(exchange) {
        const { signedIn, cookie } = await parts.sessions.signIn(exchange, exchange.body as schema.SignInBody);
        reply(exchange, signedIn, { 'Set-Cookie': cookie });
      },
    },
    {
      ...common,
      id: 'deleteConsoleSession',
      method: 'DELETE',
      path,
      summary: 'Sign out of the console',
      replies: ok('Signed out', schema.SessionEnvelope),
      errors: [401, 503],
      async handle(exchange) {
        const { cookie, session } = await parts.sessions.signOut(exchange);
        const url = await parts.oidc.signOutUrl(session, exchange.prefix);
        const data = { ...sessionReply(undefined, parts), ...(url !== null && { sign_out_url: url }) };
        exchange.reply(200, { data }, { ...NO_STORE, 'Set-Cookie': cookie });
      },
    },
    {
      ...common,
      id: 'setConsoleInferenceKey',
      method: 'PUT',
      path: `${path}/inference-key`,
      summary: 'Choose the inference key that the console runs models with',
      body: { schema: schema.InferenceKeySchema },
      replies: ok('The session', schema.SessionEnvelope),
      errors: [401, 403, 503],
      async handle(exchange) {
        const { key } = exchange.body as schema.InferenceKeyBody;
        reply(exchange, await parts.sessions.useInferenceKey(exchange, key));
      },
    },
  ];
}

/** Signing in at the identity provider. */
function oidcOperations(parts: ConsoleParts): Operation<Caller>[] {
  const path = '/console/session/oidc';
  return [
    {
      ...common,
      id: 'beginConsoleOidcSignIn',
      method: 'POST',
      path,
      summary: 'Start to sign in to the console at the identity provider',
      replies: ok(
        'The URL that the browser must open; a cookie binds the callback to this browser',
        schema.OidcBegunEnvelope,
      ),
      errors: [403, 404, 503],
      async handle(exchange) {
        const { url, cookie } = await parts.oidc.begin(exchange);
        exchange.reply(200, { data: { url } }, { ...NO_STORE, 'Set-Cookie': cookie });
      },
    },
    {
      ...common,
      id: 'finishConsoleOidcSignIn',
      method: 'GET',
      path,
      summary: 'Finish signing in: the identity provider redirects the browser to this URL',
      query: schema.OidcCallbackQuery,
      replies: {
        302: {
          description: 'A redirect to the console, or to the sign-in page with the problem',
          headers: { Location: '`../`, or the sign-in page' },
        },
      },
      errors: [404, 503],
      async handle(exchange) {
        const { cookies, problem } = await parts.oidc.finish(exchange);
        const location = problem === null ? '../' : `../#/sign-in?problem=${problem}`;
        const headers = { Location: location, 'Content-Length': '0', 'Set-Cookie': cookies, ...NO_STORE };
        exchange.response.writeHead(302, { ...headers, 'Referrer-Policy': 'no-referrer' });
        exchange.response.end();
      },
    },
  ];
}

function sessionReply(
  signedIn: SignedIn | undefined,
  { version, oidc: { name } }: Pick<ConsoleParts, 'version' | 'oidc'>,
): schema.SessionReply {
  const oidc = name === undefined ? null : { name };
  if (signedIn === undefined) return { version, oidc, session: null };
  const { management, inference, expiresAt } = signedIn;
  return {
    version,
    oidc,
    session: {
      organization_id: management.organizationId,
      management_key: keyReply(management),
      inference_key: inference && keyReply(inference),
      expires_at: expiresAt.toISOString(),
    },
  };
}

function keyReply({ keyHash, label, name, userId, workspaceId, kind }: Caller) {
  return {
    hash: keyHash,
    label,
    name,
    user_id: userId,
    workspace_id: kind === 'inference' ? workspaceId : null,
  };
}

/** Model calls of a sandbox: plain requests to the proxy's own port go to the gateway, which gets the key that the sandbox never sees. */
import http from 'node:http';
import https from 'node:https';
import { pipeline } from 'node:stream';
import { Refusal } from '../refusal.ts';
import type { GatewaySettings, ModelCall } from '../settings.ts';
import { SANDBOX_PROXY_PORT } from '../trust/environment.ts';

/** What a program that works with models needs. The control plane is not reached from a sandbox. */
const PATHS =
  /^\/(?:api\/)?v1\/(?:chat\/completions|completions|responses|messages(?:\/count_tokens)?|embeddings|rerank|images(?:\/generations)?|models(?:\/[^?]*)?|key)(?:\?.*)?$/;
const HOSTS = [`127.0.0.1:${SANDBOX_PROXY_PORT}`, `localhost:${SANDBOX_PROXY_PORT}`];
/** Of this connection alone, or about who sends the request. */
const DROPPED =
  /^(?:x-request-id|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|authorization|x-api-key|x-goog-api-key|cookie|forwarded|x-forwarded-.*|x-real-ip)$/i;
/** Headers in which programs name their session. The first is the gateway's own; the others are mapped to it. */
const SESSION_HEADERS = ['x-session-id', 'x-session-affinity', 'x-claude-code-session-id', 'session-id', 'session_id'];
const LONGEST_SESSION = 256;
/** Of a response. */
const NOT_PASSED = /^(?:connection|keep-alive|transfer-encoding)$/i;

/** @throws Refusal, or what broke before the gateway answered */
export function forwardToGateway(
  { host, port, certificate, token }: GatewaySettings,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  called: (call: ModelCall) => void,
): Promise<void> {
  const path = request.url ?? '';
  if (!HOSTS.includes(request.headers.host ?? ''))
    throw new Refusal('misdirected', 'This is not the host of the gateway.');
  if (/%|\/\.|\/\//.test(path.split('?', 1)[0]!) || !PATHS.test(path)) {
    throw new Refusal('not_allowed', 'A sandbox can only call models of the gateway.');
  }
  const headers: http.OutgoingHttpHeaders = {
    ...passed(request.headers, DROPPED),
    // Without it, node:http writes the body of a GET or DELETE unframed, as if it were the next request.
    ...(request.headers['transfer-encoding'] !== undefined && { 'transfer-encoding': 'chunked' }),
    authorization: `Bearer ${token}`,
  };
  const isCall = request.method === 'POST';
  const call = { requestId: crypto.randomUUID(), session: sessionOf(request.headers) };
  let answered = false;
  const report = (state: ModelCall['state']) => {
    if (isCall) called({ ...call, state });
  };
  if (isCall) {
    headers['x-request-id'] = call.requestId;
    if (call.session !== null) headers['x-session-id'] = call.session;
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const target = { host, port, path, method: request.method ?? 'GET', headers, agent: false };
  const isChecked = { ca: certificate ?? undefined, checkServerIdentity: () => undefined };
  const outgoing = certificate === null ? http.request(target) : https.request({ ...target, ...isChecked });
  response.once('close', () => outgoing.destroy());
  outgoing.on('error', () => reject(new Refusal('upstream', 'The gateway cannot be reached.')));
  outgoing.once('close', () => {
    if (!answered) report('unclear');
  });
  outgoing.once('response', (answer) => {
    answered = true;
    report(stateOf(answer));
    response.writeHead(answer.statusCode ?? 502, passed(answer.headers, NOT_PASSED));
    response.flushHeaders();
    pipeline(answer, response, () => resolve());
  });
  report('begun');
  pipeline(request, outgoing, () => {});
  return promise;
}

function stateOf({ statusCode = 502, headers }: http.IncomingMessage): ModelCall['state'] {
  if (statusCode >= 400) return 'unclear';
  return headers['x-generation-id'] === undefined ? 'free' : 'charged';
}

function sessionOf(headers: http.IncomingHttpHeaders): string | null {
  const named = SESSION_HEADERS.map((name) => headers[name]).find((value) => typeof value === 'string' && value !== '');
  return typeof named === 'string' && named.length <= LONGEST_SESSION ? named : null;
}

function passed(headers: http.IncomingHttpHeaders, without: RegExp): http.OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !without.test(name)));
}

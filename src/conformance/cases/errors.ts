/** Errors of upstreams, of requests, and failover to a second upstream. */
import type { FormatName } from '../formats/dialogue.ts';
import { type Exchange, FORMATS, jsonScript, type Place, STREAM_TYPE } from '../session.ts';
import type { Script } from '../upstreams.ts';
import { BOTH, type Case, excerpt, expect, heardOf, Lost, simple } from './case.ts';
import { ordinaryFrames, ordinaryScript } from './conversation.ts';

const MESSAGE = 'the temperature of this model is fixed';

/** An error in the format of the client, with one of these statuses. */
function expectError({ reply }: Exchange, { client }: Place, statuses: (status: number) => boolean): string {
  if (!statuses(reply.status)) throw new Lost(`status ${reply.status || 'none'}: ${excerpt(reply.text)}`);
  const message = FORMATS[client].errorOf(parsed(reply.text));
  if (message === undefined) throw new Lost(`${reply.status} without an error of the format: ${excerpt(reply.text)}`);
  return message;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isServerError = (status: number) => status >= 500 && status < 600;

function upstreamError(feature: string, script: () => Script, check: (exchange: Exchange, place: Place) => void): Case {
  return {
    ...{ feature, scope: 'pair', modes: BOTH },
    async run(session, place) {
      check(await session.ask(place, { asked: simple, script }), place);
    },
  };
}

const failure = (status: number, message: string, headers: Readonly<Record<string, string>> = {}) =>
  jsonScript({ type: 'error', error: { type: 'invalid_request_error', message, code: null } }, status, headers);

const UPSTREAM_ERRORS: readonly Case[] = [
  upstreamError(
    'a refusal (400) keeps status and message',
    () => failure(400, MESSAGE),
    (exchange, place) => {
      const message = expectError(exchange, place, (status) => status === 400 || status === 422);
      if (!message.includes(MESSAGE)) throw new Lost(`the message is ${excerpt(message)}`);
    },
  ),
  upstreamError(
    'a rate limit (429) keeps its status and Retry-After',
    () => failure(429, 'too many requests', { 'retry-after': '7' }),
    (exchange, place) => {
      expectError(exchange, place, (status) => status === 429);
      if (exchange.reply.headers['retry-after'] === undefined) throw new Lost('Retry-After is missing');
    },
  ),
  upstreamError(
    'a failure (500) is an error for the client',
    () => failure(500, 'internal'),
    (exchange, place) => void expectError(exchange, place, isServerError),
  ),
  upstreamError(
    'a page of a proxy (502) becomes an error of the format',
    () => ({ status: 502, headers: { 'content-type': 'text/html' }, steps: ['<html>Bad gateway</html>'] }),
    (exchange, place) => void expectError(exchange, place, isServerError),
  ),
  {
    ...upstreamError(
      'an answer that is not JSON becomes an error',
      () => ({ headers: { 'content-type': 'application/json' }, steps: ['{"id": "x", "cho'] }),
      (exchange, place) => void expectError(exchange, place, isServerError),
    ),
    modes: ['whole'],
  },
];

interface Fault {
  body(body: Record<string, unknown>): string;
  statuses: readonly number[];
  /** What the error has to name, for a format of clients. */
  names?(client: FormatName): string;
  key?: string;
  /** The upstream's reply, if the gateway leaves the check to it. */
  script?(): Script;
}

function requestError(feature: string, { body, statuses, names, key, script }: Fault): Case {
  return {
    ...{ feature, scope: 'client', modes: ['whole'] },
    async run(session, place) {
      const exchange = await session.ask(place, {
        ...{ asked: simple, script: script ?? (() => ordinaryScript(place)), body, ...(key && { key }) },
      });
      expectError(exchange, place, (status) => statuses.includes(status));
      const name = names?.(place.client) ?? '';
      if (!exchange.reply.text.includes(name)) {
        throw new Lost(`the error does not name ${name}: ${excerpt(exchange.reply.text)}`);
      }
    },
  };
}

/** The member that has the conversation. */
const conversationOf = (client: FormatName) => (client === 'responses' ? 'input' : 'messages');
const inBody = (body: Record<string, unknown>) => (body['messages'] === undefined ? 'input' : 'messages');

const REQUEST_ERRORS: readonly Case[] = [
  requestError('a body that is not JSON: 400', { body: () => '{"model": ', statuses: [400] }),
  requestError('a missing model: 400 that names it', {
    body: ({ model: _, ...body }) => JSON.stringify(body),
    ...{ statuses: [400, 422], names: () => 'model', script: () => failure(400, 'model is missing') },
  }),
  requestError('a wrong type: 400 that names the field', {
    body: (body) => JSON.stringify({ ...body, [inBody(body)]: 5 }),
    ...{ statuses: [400, 422], names: conversationOf },
  }),
  requestError('a wrong type within a list: 400 that names the field', {
    body: (body) => JSON.stringify({ ...body, [inBody(body)]: [{ role: 'user', content: 5 }] }),
    ...{ statuses: [400, 422], names: () => 'content' },
  }),
  requestError('an unknown model: 400 or 404', {
    body: (body) => JSON.stringify({ ...body, model: 'conformance/none' }),
    ...{ statuses: [400, 404], names: () => 'conformance/none' },
    script: () => failure(404, 'there is no model conformance/none'),
  }),
  requestError('a wrong key: 401', {
    ...{ body: (body) => JSON.stringify(body), statuses: [401], key: 'wrong-key' },
  }),
];

const FAILOVER: readonly Case[] = [
  {
    ...{ feature: 'failover before the first byte', scope: 'client', fallsBack: true, modes: BOTH },
    async run(session, { client, streamed }) {
      const place = { client, upstream: 'fallback', streamed } as const;
      const exchange = await session.ask(place, {
        asked: simple,
        script: ({ upstream }) => (upstream === 'first' ? failure(503, 'overloaded') : ordinaryScript(place)),
      });
      heardOf(exchange);
      expect('the last upstream', exchange.received.at(-1)?.upstream, 'second');
    },
  },
  {
    ...{ feature: 'no failover after the first text', scope: 'client', fallsBack: true, modes: ['stream'] },
    async run(session, { client }) {
      const place = { client, upstream: 'fallback', streamed: true } as const;
      const frames = ordinaryFrames(place);
      const broken = frames.slice(0, Math.floor(frames.length / 2)).map(({ text }) => text);
      const { reply, heard } = await session.ask(place, {
        asked: simple,
        script: ({ upstream }) =>
          upstream === 'first' ? { headers: STREAM_TYPE, steps: broken, end: 'cut' } : ordinaryScript(place),
      });
      // A gateway that has sent nothing yet may ask the second upstream.
      const isWhole = heard?.stop !== undefined && heard.text === 'Hello from the upstream.';
      if (isWhole) return;
      if (heard?.error === undefined && reply.end === 'complete' && reply.status === 200) {
        throw new Lost(`the client reads ${JSON.stringify(heard?.text)} and no error`);
      }
    },
  },
];

export const ERROR_CASES: readonly Case[] = [...UPSTREAM_ERRORS];
export const CLIENT_CASES: readonly Case[] = [...REQUEST_ERRORS, ...FAILOVER];

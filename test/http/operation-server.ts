/** A server with a few operations of every kind, for the tests of `http/`. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Type } from 'typebox';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { EndOfTurn } from '../../src/base/end-of-turn.ts';
import { GatewayError } from '../../src/base/errors.ts';
import { createLog, type Log } from '../../src/base/log.ts';
import { ANY_KEY, ANYONE, INFERENCE, MANAGEMENT } from '../../src/http/access-rule.ts';
import type { HttpLimits } from '../../src/http/limits.ts';
import type { Exchange, Operation } from '../../src/http/operation.ts';
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../src/http/server.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';

export interface TestCaller {
  id: string;
  kind: 'management' | 'inference';
}

export interface TestServer {
  server: HttpServer;
  port: number;
  url: string;
  /** Exchanges that reached the handler of `wait` and are not answered by it. */
  waiting: Exchange<TestCaller>[];
  /** Ids of operations in the order in which their handlers were called. */
  handled: string[];
  lines: string[];
  /** What the handler of `upload` waits for before each piece. */
  gate: Promise<unknown> | undefined;
}

const Text = Type.Object({ type: Type.Literal('text'), text: Type.String() });
const Image = Type.Object({ type: Type.Literal('image_url'), image_url: Type.Object({ url: Type.String() }) });
const User = Type.Object({
  role: Type.Literal('user'),
  content: Type.Union([Type.String(), Type.Array(Type.Union([Text, Image]))]),
});
const Tool = Type.Object({ role: Type.Literal('tool'), content: Type.String(), tool_call_id: Type.String() });

/** An open schema as inference has them. */
export const ChatBody = Type.Object({
  model: Type.Optional(Type.String({ maxLength: 20 })),
  messages: Type.Array(Type.Union([User, Tool]), { minItems: 1 }),
  temperature: Type.Optional(Type.Union([Type.Number({ minimum: 0, maximum: 2 }), Type.Null()])),
  effort: Type.Optional(Type.Enum(['low', 'medium', 'high'])),
});

/** A closed one as the control plane has them. */
const ThingBody = Type.Object(
  { name: Type.String({ minLength: 2 }), limit: Type.Optional(Type.Union([Type.Number(), Type.Null()])) },
  { additionalProperties: false },
);

const KEYS: Record<string, TestCaller> = {
  'Bearer inference': { id: 'user_1', kind: 'inference' },
  'Bearer management': { id: 'user_2', kind: 'management' },
};

/** Knows `inference` and `management`; `slow-...` keys answer one turn later; `down` is for when keys cannot be checked. */
function authenticate(headers: { authorization?: string }): TestCaller | Promise<TestCaller> {
  const given = headers.authorization ?? '';
  if (given === 'Bearer down') {
    throw new GatewayError('provider_overloaded', 'keys cannot be checked now', { retryAfterSeconds: 1.2 });
  }
  if (given.startsWith('Bearer slow-')) return Promise.resolve().then(() => known(given.replace('slow-', '')));
  return known(given);
}

function known(given: string): TestCaller {
  const caller = KEYS[given];
  if (!caller) throw new GatewayError('authentication', 'The API key is not known.');
  return caller;
}

function testOperations(test: TestServer): Operation<TestCaller>[] {
  const operation = (
    parts: Partial<Operation<TestCaller>> & Pick<Operation<TestCaller>, 'id' | 'method' | 'path'>,
  ): Operation<TestCaller> => ({
    summary: `Does ${parts.id}`,
    tag: 'tests',
    access: ANY_KEY,
    replies: { 200: { description: 'Done.' } },
    handle: (exchange) => {
      test.handled.push(parts.id);
      exchange.reply(200, {
        id: parts.id,
        params: exchange.params,
        query: exchange.query,
        body: exchange.body ?? null,
      });
    },
    ...parts,
  });
  return [
    operation({
      id: 'chat',
      method: 'POST',
      path: '/chat',
      access: INFERENCE,
      body: { schema: ChatBody, maxBytes: 2_000_000 },
    }),
    operation({
      id: 'messages',
      method: 'POST',
      path: '/messages',
      body: { schema: ChatBody },
      encodeError: (error, about) => ({ type: 'error', message: error.message, request_id: about.requestId }),
    }),
    operation({
      id: 'listThings',
      method: 'GET',
      path: '/things',
      query: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
        deleted: Type.Optional(Type.Boolean()),
        order: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
        tag: Type.Optional(Type.Array(Type.String())),
      }),
    }),
    operation({
      id: 'createThing',
      method: 'POST',
      path: '/things',
      access: MANAGEMENT,
      body: { schema: ThingBody, maxBytes: 1000 },
    }),
    operation({ id: 'currentThing', method: 'GET', path: '/things/current' }),
    operation({ id: 'getThing', method: 'GET', path: '/things/{id}' }),
    operation({ id: 'deleteThing', method: 'DELETE', path: '/things/{id}', access: MANAGEMENT }),
    operation({ id: 'thingPart', method: 'GET', path: '/things/{id}/parts/{part}' }),
    operation({ id: 'poke', method: 'POST', path: '/poke', body: { schema: Type.Object({}), optional: true } }),
    operation({ id: 'health', method: 'GET', path: '/health', root: true, access: ANYONE }),
    operation({
      id: 'fail',
      method: 'GET',
      path: '/fail',
      handle: () => {
        throw new Error('the password is hunter2');
      },
    }),
    operation({
      id: 'failPrepared',
      method: 'GET',
      path: '/fail-prepared',
      handle: ({ response }) => {
        response.setHeader('Content-Encoding', 'gzip');
        response.setHeader('Content-Length', '3');
        response.setHeader('X-Generation-Id', 'gen-1');
        throw new GatewayError('provider_unavailable', 'the upstream is gone');
      },
    }),
    operation({
      id: 'failLater',
      method: 'GET',
      path: '/fail-later',
      handle: () => Promise.reject(new Error('later')),
    }),
    operation({
      id: 'refuse',
      method: 'GET',
      path: '/refuse',
      handle: () => {
        throw new GatewayError('rate_limit_exceeded', 'slow down', {
          retryAfterSeconds: 7,
          metadata: { provider_name: 'Acme' },
          availability: { code: 'capacity_exhausted', retryable: true },
        });
      },
    }),
    operation({
      id: 'wait',
      method: 'POST',
      path: '/wait',
      body: { schema: Type.Object({}), optional: true },
      handle: (exchange) => void test.waiting.push(exchange),
    }),
    operation({
      id: 'upload',
      method: 'POST',
      path: '/upload',
      upload: { contentType: 'application/octet-stream', schema: Type.String(), maxBytes: 300 * 2 ** 20 },
      async handle(exchange) {
        test.waiting.push(exchange);
        const hash = createHash('sha256');
        let bytes = 0;
        try {
          for await (const chunk of exchange.upload!) {
            await test.gate;
            bytes += chunk.length;
            hash.update(chunk);
          }
        } catch (error) {
          test.lines.push(`upload: ${(error as Error).message}`);
          throw error;
        }
        exchange.reply(200, { bytes, sha256: hash.digest('hex') });
      },
    }),
    operation({
      id: 'uploadRefused',
      method: 'POST',
      path: '/upload-refused',
      upload: { contentType: 'application/octet-stream', schema: Type.String(), maxBytes: 300 * 2 ** 20 },
      async handle(exchange) {
        for await (const _ of exchange.upload!)
          throw new GatewayError('invalid_request', 'there is one already', { status: 409 });
      },
    }),
    operation({
      id: 'endless',
      method: 'GET',
      path: '/endless',
      async handle({ response }) {
        response.writeHead(200, { 'Content-Type': 'text/plain' });
        await pipeline(Readable.from(repeated('x'.repeat(65_536))), response).catch((error: Error) => {
          test.lines.push(`download: ${error.message}`);
          throw error;
        });
      },
    }),
    operation({
      id: 'break',
      method: 'GET',
      path: '/break',
      handle: (exchange) => {
        exchange.response.writeHead(200, { 'Content-Type': 'text/plain' });
        exchange.response.write('half');
        throw new Error('broken');
      },
    }),
  ];
}

function* repeated(text: string): Generator<string> {
  for (;;) yield text;
}

/** Listens on a free port of the loopback; `stop` it with `server.drain(0)`. */
export async function startTestServer(
  options: {
    limits?: Partial<HttpLimits>;
    clock?: Clock;
    tls?: HttpServerOptions<TestCaller>['tls'];
    authenticate?: HttpServerOptions<TestCaller>['authenticate'];
    endOfTurn?: EndOfTurn;
  } = {},
): Promise<TestServer> {
  const test = { waiting: [], handled: [], lines: [] } as unknown as TestServer;
  const log: Log = createLog({ stream: { write: (line) => test.lines.push(line) } });
  test.server = createHttpServer<TestCaller>({
    operations: testOperations(test),
    authenticate: options.authenticate ?? authenticate,
    permit: ({ caller }, { kinds }) => {
      if (kinds === 'anyone' || kinds.includes(caller.kind)) return;
      throw new GatewayError('permission_denied', `this needs a key for ${kinds.join(' or ')}`);
    },
    userId: (caller) => caller.id,
    clock: options.clock ?? systemClock,
    log,
    limits: options.limits,
    tls: options.tls,
    endOfTurn: options.endOfTurn,
  });
  test.port = (await test.server.listen(0, '127.0.0.1')).port;
  test.url = `${options.tls ? 'https' : 'http'}://127.0.0.1:${test.port}`;
  return test;
}

/** Such a server with a clock of its own, for the time of `work`. */
export async function serving(
  limits: Partial<HttpLimits>,
  work: (running: TestServer, clock: TestClock) => Promise<void>,
  authenticate?: () => Promise<TestCaller>,
): Promise<void> {
  const clock = new TestClock();
  const running = await startTestServer({ limits, clock, authenticate });
  try {
    await work(running, clock);
  } finally {
    const drained = running.server.drain(0);
    clock.advance(0);
    await drained;
  }
}

import assert from 'node:assert/strict';
import test from 'node:test';
import { silentLog } from '../base/log.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import { TestClock } from '../testing/clock/clock.ts';
import { type Signer, SignInError, type Token, TokenKeeper } from './auth/sign.ts';
import { deliver } from './deliver.ts';
import { chat } from './kinds/chat.ts';
import type { Delivery, ProviderKind } from './provider.ts';
import type { Transport, UpstreamReceiver, UpstreamRequest } from './send/index.ts';

const TIMEOUTS = { connect: 1000, firstByte: 2000, idle: 2000, stall: 10_000, total: 10_000 };

interface Sent {
  requests: UpstreamRequest[];
  calls: string[];
  failures: { failure: UpstreamFailure; sent: boolean }[];
}

function setUp(kind: Partial<ProviderKind> = {}, signer?: Signer) {
  const sent: Sent = { requests: [], calls: [], failures: [] };
  const transport: Transport = {
    send(request) {
      sent.requests.push(request);
      const note = (word: string) => () => void sent.calls.push(word);
      return { pause: note('pause'), resume: note('resume'), abort: note('abort') };
    },
    async close() {},
  };
  const receiver: UpstreamReceiver = {
    head() {},
    data() {},
    end() {},
    failed: (failure, wasSent) => void sent.failures.push({ failure, sent: wasSent }),
  };
  const clock = new TestClock();
  const delivery: Delivery = {
    provider: {
      id: 'p',
      name: 'P',
      kind: { ...chat, ...kind },
      baseUrl: 'http://upstream.test/v1',
      options: {},
      credentials: ['k'],
      timeouts: TIMEOUTS,
      maxConcurrency: 1,
      ...(signer && { signer }),
    },
    credential: 'k',
    format: 'chat',
    model: 'm',
    stream: true,
    path: '/chat/completions',
    body: '{}',
    clientHeaders: { 'x-wanted': 'yes', cookie: 'secret' },
  };
  return { sent, clock, start: () => deliver(delivery, receiver, { transport, clock, log: silentLog }) };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a call without a signer is sent at once, with the headers of its kind and forwarded ones', () => {
  const { sent, start } = setUp({ forwards: ['x-wanted'] });
  start();
  assert.deepEqual(sent.requests, [
    {
      url: 'http://upstream.test/v1/chat/completions',
      headers: { authorization: 'Bearer k', 'x-wanted': 'yes' },
      body: '{}',
      timeouts: TIMEOUTS,
    },
  ]);
});

test('a kind can choose the path by model and streaming', () => {
  const { sent, start } = setUp({
    path: ({ model, stream, format }) => `/${format}/${model}${stream ? ':stream' : ''}`,
  });
  start();
  assert.equal(sent.requests[0]?.url, 'http://upstream.test/v1/chat/m:stream');
});

test('a synchronous signature costs no event loop turn and sees the whole request', () => {
  const { sent, start } = setUp({}, { sign: ({ request }) => ({ 'x-signed': `${request.url} ${request.body}` }) });
  start();
  assert.equal(sent.requests[0]?.headers['x-signed'], 'http://upstream.test/v1/chat/completions {}');
  assert.equal(sent.requests[0]?.headers['authorization'], 'Bearer k');
});

test('a call that waits for its signature can be paused and resumed', async () => {
  const signing = Promise.withResolvers<Record<string, string>>();
  const { sent, start } = setUp({}, { sign: () => signing.promise });
  const call = start();
  call.pause();
  assert.equal(sent.requests.length, 0);
  signing.resolve({ authorization: 'Bearer token' });
  await settled();
  assert.equal(sent.requests[0]?.headers['authorization'], 'Bearer token');
  call.resume();
  call.abort();
  assert.deepEqual(sent.calls, ['pause', 'resume', 'abort']);
});

test('a call aborted before it is signed is never sent', async () => {
  const signing = Promise.withResolvers<Record<string, string>>();
  const { sent, start, clock } = setUp({}, { sign: () => signing.promise });
  start().abort();
  signing.resolve({});
  await settled();
  clock.advance(TIMEOUTS.connect);
  assert.deepEqual(sent, { requests: [], calls: [], failures: [] });
});

test('a failed sign-in reports its own failure, any other error a refused credential', async () => {
  const failure: UpstreamFailure = { kind: 'permission', status: 403, message: 'no' };
  const faults: [unknown, UpstreamFailure['kind']][] = [
    [new SignInError(failure), 'permission'],
    [new TypeError('a fault with sk-secret in it'), 'auth'],
  ];
  for (const [cause, kind] of faults) {
    for (const sign of [() => Promise.reject(cause), () => raise(cause)]) {
      const { sent, start } = setUp({}, { sign });
      start();
      assert.equal(sent.failures.length, 0, 'not before deliver has returned');
      await settled();
      assert.deepEqual([sent.failures[0]?.failure.kind, sent.failures[0]?.sent], [kind, false]);
      assert.ok(!sent.failures[0]?.failure.message.includes('secret'));
      assert.equal(sent.requests.length, 0);
    }
  }
});

test('a hanging sign-in times out, and its late result is not sent', async () => {
  const signing = Promise.withResolvers<Record<string, string>>();
  const { sent, start, clock } = setUp({}, { sign: () => signing.promise });
  start();
  clock.advance(TIMEOUTS.connect);
  assert.equal(sent.failures[0]?.failure.kind, 'timeout');
  signing.resolve({});
  await settled();
  assert.equal(sent.requests.length, 0);
});

test('concurrent calls share one token fetch, and a valid token needs no wait', async () => {
  const { keeper, fetches, clock } = keeperOf();
  const waiting = Array.from({ length: 20 }, () => keeper.token(clock));
  assert.equal(fetches.length, 1);
  fetches[0]!.resolve({ value: 'one', expiresAt: clock.now() + 3_600_000 });
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['one']));
  assert.equal(keeper.token(clock), 'one');
});

test('a token is renewed early while calls use the old one, and a failed renewal is not repeated at once', async () => {
  const { keeper, fetches, clock } = keeperOf();
  const first = keeper.token(clock);
  fetches[0]!.resolve({ value: 'one', expiresAt: clock.now() + 3_600_000 });
  await first;
  clock.advance(3_600_000 - 4 * 60_000);
  assert.equal(keeper.token(clock), 'one');
  assert.equal(keeper.token(clock), 'one');
  assert.equal(fetches.length, 2);
  fetches[1]!.reject(new Error('down'));
  await settled();
  assert.equal(keeper.token(clock), 'one');
  assert.equal(fetches.length, 2);
  clock.advance(10_000);
  assert.equal(keeper.token(clock), 'one');
  fetches[2]!.resolve({ value: 'two', expiresAt: clock.now() + 3_600_000 });
  await settled();
  assert.equal(keeper.token(clock), 'two');
});

test('a hanging fetch is replaced, and its late result is ignored', async () => {
  const { keeper, fetches, clock } = keeperOf();
  const lost = keeper.token(clock);
  clock.advance(30_000);
  const next = keeper.token(clock);
  assert.equal(fetches.length, 2);
  fetches[1]!.resolve({ value: 'second', expiresAt: clock.now() + 3_600_000 });
  assert.equal(await next, 'second');
  fetches[0]!.resolve({ value: 'first', expiresAt: clock.now() + 3_600_000 });
  assert.equal(await lost, 'first');
  assert.equal(keeper.token(clock), 'second');
});

test('a failed fetch fails only the waiting calls, and a refused token is not used twice', async () => {
  const { keeper, fetches, clock } = keeperOf();
  const waiting = [keeper.token(clock), keeper.token(clock)];
  fetches[0]!.reject(new Error('down'));
  for (const one of waiting) await assert.rejects(async () => one, /down/);
  const next = keeper.token(clock);
  fetches[1]!.resolve({ value: 'one', expiresAt: clock.now() + 3_600_000 });
  assert.equal(await next, 'one');
  keeper.forget();
  assert.notEqual(keeper.token(clock), 'one');
  assert.equal(fetches.length, 3);
  fetches[2]!.resolve({ value: 'two', expiresAt: clock.now() });
});

function keeperOf() {
  const fetches: PromiseWithResolvers<Token>[] = [];
  const keeper = new TokenKeeper(() => {
    const fetch = Promise.withResolvers<Token>();
    fetches.push(fetch);
    return fetch.promise;
  });
  return { keeper, fetches, clock: new TestClock() };
}

function raise(cause: unknown): never {
  throw cause;
}

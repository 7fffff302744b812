/**
 * Recorded traffic through a whole gateway: every recording is the answer of an upstream of its own, played over a socket
 * to clients of every format, as it came, cut and broken off at places that a seed chooses. Every position is tried without
 * sockets, in test/recordings/pipeline.test.ts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KINDS } from '../../src/providers/index.ts';
import {
  assertContent,
  assertServed,
  type ClientFormat,
  readServedStream,
  readServedWhole,
  CLIENT_FORMATS as SERVED,
  type ServedAnswer,
} from '../../src/testing/clients/served-answer.ts';
import { PATH_OF } from '../../src/testing/clients/whole-answer.ts';
import { type Gateway, type ProviderOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { corpusMissing } from '../../src/testing/recordings/corpus.ts';
import { seeded } from '../../src/testing/recordings/cuts.ts';
import {
  type RecordedConversation,
  readRecording,
  recordedConversations,
} from '../../src/testing/recordings/readers.ts';
import { type Counts, type RecordedAnswer, saysSomething } from '../../src/testing/recordings/recorded-answer.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';
/** Of each stream, by turns in each served format. */
const CUTS = exhaustive ? 100 : 6;
const TRUNCATIONS = exhaustive ? 100 : 8;
/** Recordings that are played at once. */
const LANES = 4;

const all = recordedConversations('chat', 'messages', 'responses', 'gemini', 'converse', 'cohere')
  // Shortened by hand: its deltas are another text than its end.
  .filter(({ id }) => !id.includes('shell-container'));
const answered = all.filter(({ status }) => status === 200);
const streams = answered.filter(({ stream }) => stream);

/** The path and the body of a greeting. */
function greetingOf(served: ClientFormat, model: string, stream: boolean): [path: string, body: object] {
  if (served === 'gemini') {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    const thinkingConfig = { includeThoughts: true };
    const generationConfig = { maxOutputTokens: 100, thinkingConfig };
    return [`/models/${model}:${method}`, { contents: [{ parts: [{ text: 'hi' }] }], generationConfig }];
  }
  const hello = [{ role: 'user', content: 'hi' }];
  const said = served === 'responses' ? { input: hello } : { max_tokens: 100, messages: hello };
  return [PATH_OF[served], { model, ...said, stream }];
}

describe('recorded traffic through sockets', { skip: corpusMissing }, () => {
  let gateway: Gateway;
  const closing: (() => Promise<void>)[] = [];
  const counted = { exchanges: 0, cuts: 0, truncations: 0 };

  before(async () => {
    const providers = Object.fromEntries(
      all.map((recording, at): [string, ProviderOptions] => [keyOf(at), providerOf(recording)]),
    );
    gateway = await startGateway({ after: (close) => closing.push(close as () => Promise<void>) }, { providers });
  });

  // The gateway before its database.
  after(async () => {
    for (const close of closing.toReversed()) await close();
  });

  test('every response, streamed and whole, reaches clients of every format, and GET /generation reports its usage', async () => {
    await each(answered, async (recording, key) => {
      for (const served of SERVED) {
        const where = `${recording.id} as ${served}`;
        const recorded = readRecording(recording);
        const seen = await ask(key, recording, served, recording.stream, {});
        if (seen.status !== 200) assertRefused(served, seen, recorded, where);
        else {
          const read = recording.stream
            ? readServedStream(served, seen.text, 'finish')
            : readServedWhole(served, seen.text);
          if (recorded.complete) assertServed(served, read, recorded, where);
          else assertBroken(served, read, recorded, where);
          await assertGeneration(seen.generation, read, where);
        }
      }
    });
  });

  test('every error reaches clients of every format with its status, its wait, and an id', async () => {
    const errors = all.filter(({ status }) => status >= 400);
    assert.ok(errors.length >= 20);
    await each(errors, async (recording, key) => {
      for (const served of SERVED) {
        for (const stream of [false, true]) {
          const where = `${recording.id} as ${served}`;
          const seen = await ask(key, recording, served, stream, {});
          assert.ok(STATUSES[recording.status]!.includes(seen.status), `${where}: ${seen.status}`);
          assertEnvelope(served, seen, where);
          const wait = recording.headers['retry-after'];
          if (wait !== undefined && seen.status === 429) assert.equal(seen.wait, wait, where);
          const row = await generationOf(seen.generation);
          assert.equal(row['finish_reason'], 'error', where);
          assert.equal(row['total_cost'], 0, where);
        }
      }
    });
  });

  test('a stream cut in two by the network reads as it does in one piece', async () => {
    await each(streams, async (recording, key) => {
      const ones = new Map<ClientFormat, string>();
      for (const served of SERVED) ones.set(served, same(await ask(key, recording, served, true, {})));
      for (const [turn, at] of seeded(`${recording.id} cuts`, CUTS, recording.bytes.length).entries()) {
        const served = SERVED[turn % SERVED.length]!;
        const cut = same(await ask(key, recording, served, true, { pieces: [at] }));
        assert.equal(cut, ones.get(served), `${recording.id} as ${served} cut at ${at}`);
        counted.cuts += 1;
      }
    });
  });

  test('a stream that breaks off keeps what was seen and ends in one error, however its connection ends', async () => {
    await each(streams, async (recording, key) => {
      const positions = seeded(`${recording.id} ends`, TRUNCATIONS, recording.bytes.length);
      for (const [turn, at] of positions.entries()) {
        const served = SERVED[Math.floor(turn / ENDS.length) % SERVED.length]!;
        const end = ENDS[turn % ENDS.length]!;
        const where = `${recording.id} as ${served} ended by ${end} at ${at}`;
        const kept = recording.bytes.subarray(0, at);
        const ending = end === 'close' ? 'close' : 'break';
        const recorded = readRecording(recording, kept, ending);
        const seen = await ask(key, recording, served, true, { truncateAt: at, end });
        counted.truncations += 1;
        if (seen.status !== 200) {
          // A reset may take what was still on its way, so that nothing at all was seen.
          if (end !== 'reset') assertRefused(served, seen, recorded, where);
          continue;
        }
        const read = readServedStream(served, seen.text, 'finish');
        if (recorded.complete) assertServed(served, read, recorded, where);
        else if (end === 'reset') assertBeginning(read, recorded, where);
        else assertBroken(served, read, recorded, where);
      }
    });
  });

  test('what was tried', (t) => {
    t.diagnostic(`${all.length} recordings: ${JSON.stringify(counted)}`);
  });

  interface Seen {
    status: number;
    text: string;
    generation: string;
    wait: string | null;
  }

  async function ask(
    key: string,
    recording: RecordedConversation,
    served: ClientFormat,
    stream: boolean,
    more: Answer,
  ): Promise<Seen> {
    counted.exchanges += 1;
    const { status, headers, bytes } = recording;
    gateway.upstream.script(key, { status, headers, chunks: [bytes], ...more });
    const reply = await gateway.post(...greetingOf(served, `test/${key}`, stream));
    const generation = reply.headers.get('x-generation-id') ?? '';
    return { status: reply.status, text: await reply.text(), generation, wait: reply.headers.get('retry-after') };
  }

  async function generationOf(id: string): Promise<Record<string, unknown>> {
    assert.match(id, /^gen-/);
    const reply = await gateway.get(`/generation?id=${id}`);
    assert.equal(reply.status, 200);
    return ((await reply.json()) as { data: Record<string, unknown> }).data;
  }

  async function assertGeneration(id: string, read: ServedAnswer, where: string): Promise<void> {
    const row = await generationOf(id);
    if (read.error !== null) {
      assert.equal(row['finish_reason'], 'error', where);
      return;
    }
    assert.equal(String(read.id).replace(/^resp_/, 'gen-'), id, where);
    const shown: Partial<Counts> = {
      input: row['tokens_prompt'] as number,
      cacheRead: row['native_tokens_cached'] as number,
      output: row['tokens_completion'] as number,
      reasoning: row['native_tokens_reasoning'] as number,
    };
    const { cacheWrite: _, ...usage } = read.usage!;
    assert.deepEqual(usage, shown, where);
    assert.equal(read.cost, row['total_cost'], where);
    assert.equal(row['error'] ?? null, null, where);
  }
});

/** How a broken stream's connection ends: in order, before the answer is complete, or by a reset. */
const ENDS = ['close', 'cut', 'close', 'cut', 'reset'] as const;

/** What clients may get for a service's status: its account is the gateway's own business, and 413 may mean a rate. */
const STATUSES: Record<number, number[]> = {
  // A key that is not valid is a bad request to some.
  400: [400, 502],
  401: [502],
  403: [502],
  404: [404],
  413: [413, 429],
  422: [422],
  // An empty account at the service is not the client's.
  429: [429, 502],
  502: [502],
  529: [529],
};

function keyOf(at: number): string {
  return `r${at}`;
}

/** The vendor's own kind if there is one, so that its quirks are known; the bare format otherwise. */
function providerOf({ provider, format }: RecordedConversation): ProviderOptions {
  if (format === 'gemini' || format === 'converse') return { kind: format };
  const own = KINDS.find((kind) => kind.id === provider && kind.speaks === format);
  // Of services that speak several formats each recording is of one.
  return { kind: own === undefined || own.alsoSpeaks !== undefined ? format : own.id };
}

/** Runs over recordings, some at a time; those of one recording one after the other. */
async function each(
  list: readonly RecordedConversation[],
  run: (recording: RecordedConversation, key: string) => Promise<void>,
) {
  const waiting = [...list];
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await run(next, keyOf(all.indexOf(next)));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** An answer without what differs from request to request. */
function same({ status, text, generation }: { status: number; text: string; generation: string }): string {
  const timeless = text
    .replaceAll(/"(?:created|completed)(?:_at)?":\d+/g, '"time":0')
    .replaceAll(/"createTime":"[^"]*"/g, '"time":0')
    .replaceAll(/"request_id":"[^"]*"/g, '');
  return `${status} ${generation === '' ? timeless : timeless.replaceAll(generation.replace('gen-', ''), 'gen')}`;
}

function assertRefused(
  served: ClientFormat,
  seen: { status: number; text: string; generation: string },
  recorded: RecordedAnswer,
  where: string,
): void {
  // What may become a thinking tag is held back, so the client has not seen it.
  const held = /^<(t(h(i(nk?)?)?)?)?$/.test(recorded.choices[0]?.text ?? '');
  assert.ok(
    !recorded.complete && (held || !saysSomething(recorded)),
    `${where}: ${seen.status} ${seen.text.slice(0, 300)}`,
  );
  assertEnvelope(served, seen, where);
}

function assertEnvelope(
  served: ClientFormat,
  seen: { status: number; text: string; generation: string },
  where: string,
): void {
  assert.ok(seen.status >= 400, where);
  assert.match(seen.generation, /^gen-/, where);
  const body = JSON.parse(seen.text);
  assert.ok(typeof body.error.message === 'string' && body.error.message !== '', where);
  if (served === 'chat') assert.equal(body.error.code, seen.status, where);
  else if (served === 'responses') assert.equal(typeof body.error_type, 'string', where);
  else if (served === 'gemini') assert.equal(body.error.code, seen.status, where);
  else assert.deepEqual([body.type, typeof body.error.type, typeof body.request_id], ['error', 'string', 'string']);
}

function assertBroken(served: ClientFormat, read: ServedAnswer, recorded: RecordedAnswer, where: string): void {
  assert.ok(read.error !== null, `${where}: ends as if it were complete`);
  assert.ok(saysSomething(recorded) || recorded.other, `${where}: opened for nothing`);
  assertContent(served, read, recorded, where);
}

/** A reset may lose the end, but everything before it is right, and there is an error. */
function assertBeginning(read: ServedAnswer, recorded: RecordedAnswer, where: string): void {
  assert.ok(read.error !== null, `${where}: ends as if it were complete`);
  const { text = '', reasoning = '', refusal = '' } = recorded.choices[0] ?? {};
  const [choice] = read.choices;
  assert.ok((text + refusal).startsWith(choice?.text ?? ''), `${where}: text`);
  assert.ok(reasoning.startsWith(choice?.reasoning ?? ''), `${where}: reasoning`);
}

/** Recorded exchanges of batch interfaces, read back by the parts that read them in use. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { type BatchAccount, KINDS, type Transport, type UpstreamRequest } from '../../src/providers/index.ts';
import { corpusMissing, type Recording, recordings } from '../../src/testing/recordings/corpus.ts';

const found = recordings(['batches', 'generate']);
const of = (start: string): Recording => {
  const recording = found.find(({ id }) => id.startsWith(start));
  assert.ok(recording, start);
  return recording;
};

/** An account at a provider that answers every request with one recording. */
function playing(kindId: string, bytes: Buffer) {
  const asked: UpstreamRequest[] = [];
  const transport: Transport = {
    send(request, receiver) {
      asked.push(request);
      queueMicrotask(() => {
        receiver.head(200, {});
        receiver.data(bytes);
        receiver.end();
      });
      return { pause() {}, resume() {}, abort() {} };
    },
    async close() {},
  };
  const kind = KINDS.find(({ id }) => id === kindId)!;
  const baseUrl = kind.baseUrl as string;
  const provider = { id: kindId, name: kindId, kind, baseUrl, options: {}, credentials: [], maxConcurrency: 1 };
  const timeouts = { connect: 1, firstByte: 1, idle: 1, stall: 1, total: 1 };
  const account: BatchAccount = {
    target: { provider: { ...provider, timeouts }, credential: 'key' },
    clientHeaders: {},
    parts: { transport, clock: systemClock, log: silentLog },
  };
  return { account, asked, service: kind.batches! };
}

describe('recorded batches', { skip: corpusMissing }, () => {
  const anthropic = 'anthropic/batches-batch-with-anthropic-claude-haiku-4-5-answers-staged-chats-and-appends';

  test('the states of batches at Anthropic and OpenAI', async () => {
    const running = playing('anthropic', of(`${anthropic}-2.json`).bytes);
    const { id, state } = await running.service.poll('msgbatch_01GUqGVJfUzZfBnjRymfPdV3', running.account);
    assert.deepEqual([id, state], ['msgbatch_01GUqGVJfUzZfBnjRymfPdV3', 'running']);
    assert.equal(running.asked[0]!.url, `https://api.anthropic.com/v1/messages/batches/${id}`);
    const ended = playing('anthropic', of(`${anthropic}-3.json`).bytes);
    assert.equal((await ended.service.poll(id, ended.account)).state, 'completed');
    const openai = playing('openai', of('openai/batches-batch-with').bytes);
    assert.deepEqual(await openai.service.poll('batch_6a85c08a63188190982c56b42faa4ff5', openai.account), {
      id: 'batch_6a85c08a63188190982c56b42faa4ff5',
      state: 'completed',
      message: undefined,
      outputs: ['file-4SnbT9qu8ShH2A1wCvTHNp'],
    });
  });

  test('the results of a batch at Anthropic, each with the bytes of its message', async () => {
    const recording = of(`${anthropic}.jsonl`);
    const { service, account } = playing('anthropic', recording.bytes);
    const results = [];
    for await (const each of service.results({ id: 'x', state: 'completed', outputs: ['x'] }, account))
      results.push(each);
    assert.deepEqual(
      results.map((each) => [each.id, each.kind, each.kind === 'answered' && each.status]),
      [
        ['0', 'answered', 200],
        ['1', 'answered', 200],
      ],
    );
    const messages = results.map((each) => (each.kind === 'answered' ? each.body.toString() : ''));
    assert.deepEqual(
      messages.map((text) => JSON.parse(text).content[0].text),
      ['4', 'Jupiter'],
    );
    for (const text of messages) assert.ok(recording.bytes.toString().includes(text));
  });

  test('the creation of a batch at Anthropic has the members of the recorded one', () => {
    const { service } = playing('anthropic', Buffer.alloc(0));
    const recorded = of(`${anthropic}-2.json`).request as { requests: { custom_id: string; params: object }[] };
    const { head, between, tail } = service.frame({ marker: 'm', model: 'x' });
    const lines = recorded.requests.map(({ custom_id: id, params }) =>
      service
        .line(id, { format: 'messages', path: '/messages', model: 'x', body: Buffer.from(JSON.stringify(params)) })
        .toString(),
    );
    assert.deepEqual(JSON.parse(head + lines.join(between) + tail), recorded);
  });

  test('the state and the name of a batch at the Gemini API', async () => {
    const recording = of('google/generate-batch-with-gemini');
    const { service, account, asked } = playing('google', recording.bytes);
    const batch = await service.poll('batches/31u18uq6dr4ods3957z38i1mbfa581k01xcq', account);
    assert.deepEqual([batch.state, batch.outputs], ['running', []]);
    assert.match(asked[0]!.url, /^https:\/\/generativelanguage\.googleapis\.com\/v1beta\/batches\/31u18\w+\?fields=/);
    const list = playing('google', Buffer.from(`{"operations":[${recording.bytes}]}`));
    const about = { marker: 'm', model: 'x', format: 'gemini', path: '/x', items: 2, beganAt: 0 } as const;
    assert.deepEqual(await list.service.find(about, null, list.account), []);
  });
});

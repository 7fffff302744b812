import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FinishedExchange, Operation } from '../../http/operation.ts';
import { sampleAccepted, sampleGeneration } from '../../testing/laws/spend-samples.ts';
import { Recorder } from './recorder.ts';

const operation = { id: 'createChatCompletion' } as Operation;

function exchange(change: Partial<FinishedExchange> = {}): FinishedExchange {
  return {
    requestId: 'r',
    method: 'POST',
    path: '/api/v1/chat/completions',
    operation,
    clientAddress: undefined,
    caller: undefined,
    status: 200,
    closed: false,
    startedAt: 0,
    durationMs: 12,
    headers: {},
    record: undefined,
    trace: undefined,
    ...change,
  };
}

const row = (endpointId: string, change = {}) => sampleGeneration(sampleAccepted('gen-1'), { endpointId, ...change });
const failed = { status: 502, error: { type: 'server', message: 'no' } };
const modelsOf = (recorder: Recorder) => [...recorder.series()].map(({ provider, model }) => `${provider} ${model}`);

test('unlisted names that never answer get no series of their own, however many are requested', () => {
  const recorder = new Recorder((id) => id === 'acme:listed');
  for (let count = 0; count < 10_000; count += 1) {
    recorder.finished(exchange({ status: 502 }), row(`acme:made-up-${count}`, failed));
    recorder.attempted(`acme:made-up-${count}`, 'not_found');
  }
  recorder.finished(exchange({ status: 502 }), row('acme:listed', failed));
  recorder.finished(exchange(), row('acme:unlisted-but-real'));
  assert.deepEqual(modelsOf(recorder), ['acme other', 'acme listed', 'acme unlisted-but-real']);
  assert.deepEqual(
    [...recorder.attempts()].map(({ provider, model, outcomes }) => [provider, model, [...outcomes]]),
    [['acme', 'other', [['not_found', 10_000]]]],
  );
});

test('over the limit, models of a provider are counted together, and nothing is lost', () => {
  const recorder = new Recorder(() => true, 3);
  for (let count = 0; count < 10; count += 1) recorder.finished(exchange(), row(`acme:model-${count}`));
  assert.deepEqual(modelsOf(recorder), ['acme model-0', 'acme model-1', 'acme model-2', 'acme other']);
  const counts = [...recorder.series()].map(({ statuses }) => statuses.get(200));
  assert.deepEqual(counts, [1, 1, 1, 7]);
  const outputs = [...recorder.consumption()].map(({ output }) => output);
  assert.equal(
    outputs.reduce((total, count) => total + count, 0),
    500,
  );
});

test('requests without a generation are counted by operation and status only', () => {
  const recorder = new Recorder(() => true);
  recorder.finished(exchange({ status: 401 }), undefined);
  recorder.finished(exchange({ status: 404, operation: undefined }), undefined);
  recorder.finished(exchange({ status: 0, closed: true }), undefined);
  const told = [...recorder.series()].map(({ operation: of, provider, model, statuses, cancelled }) => [
    ...[of, provider, model, cancelled],
    [...statuses],
  ]);
  assert.deepEqual(told, [
    [
      ...['createChatCompletion', '', '', 1],
      [
        [401, 1],
        [0, 1],
      ],
    ],
    ['none', '', '', 0, [[404, 1]]],
  ]);
});

/** The batch interface of every vendor: creation, results in any order, errors, expiry, cancellation, and a lost answer. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import type { BatchVendor, VendorRequest } from '../../src/testing/upstream/batch-vendor.ts';
import { batchesOf, type Json } from './batches-client.ts';
import { answers, halfCost, item, nativeBatch, providerOf, startVendor } from './native.ts';

const ids = ['a', 'b', 'c', 'd'];
const errors: Partial<Record<keyof typeof answers, Json>> = {
  anthropic: { type: 'error', error: { type: 'invalid_request_error', message: 'not this one' } },
  google: { error: { code: 3, message: 'not this one', status: 'INVALID_ARGUMENT' } },
  vertex: { error: { code: 400, message: 'not this one', status: 'INVALID_ARGUMENT' } },
  bedrock: { message: 'not this one' },
  xai: { error: { code: 3, message: 'not this one' } },
};
const percent: Partial<Record<keyof typeof answers, number>> = { xai: 80 };
const textsOf = (batch: Json) =>
  batch.results.map(({ response, error }: Json) => response?.body.choices[0].message.content ?? error.error_type);
const isCreation = ({ method, path }: VendorRequest) =>
  method === 'POST' &&
  /(batches|\/batch\/jobs|:batchGenerateContent|\/model-invocation-job|\/batchPredictionJobs)$/.test(path);

const kinds = Object.keys(answers) as (keyof typeof answers)[];
const file = { after: (close: unknown) => after(close as () => Promise<void>) };
const vendors = Object.fromEntries(
  await Promise.all(kinds.map(async (kind) => [kind, await startVendor(file, kind)] as const)),
) as Record<keyof typeof answers, BatchVendor>;
const gateway = await startGateway(file, {
  providers: Object.fromEntries(kinds.map((kind) => [kind, providerOf(vendors[kind], kind)])),
});
const client = batchesOf(gateway);
/** @returns the id */
async function submitted(kind: string, more: object = {}): Promise<string> {
  const requests = ids.map((id) => item(id));
  const batch = nativeBatch(requests, { model: `test/${kind}`, ...more });
  return (await client.submitted(batch)).id;
}

describe('a batch runs once although the answer to its creation is lost, and one refused request is named', {
  concurrency: 3,
}, () => {
  for (const kind of kinds)
    test(kind, async () => {
      const vendor = vendors[kind];
      const refused = errors[kind] ?? { error: { message: 'not this one', type: 'invalid_request_error' } };
      vendor.answer = (call) =>
        JSON.stringify(call.body).includes('"c"') ? { status: 400, body: refused } : answers[kind](call);
      let lost = false;
      vendor.fault = (request) => {
        if (lost || !isCreation(request)) return undefined;
        lost = true;
        return 'drop';
      };
      const batch = await client.ended(await submitted(kind));
      assert.deepEqual(textsOf(batch), ['re: a', 're: b', 'invalid_request', 're: d']);
      assert.match(batch.results[2].error.message, /not this one/);
      const cost = halfCost(['a', 'b', 'd'], percent[kind]);
      assert.ok(Math.abs(batch.usage.cost - cost) < 1e-9, `${batch.usage.cost} ${cost}`);
      assert.equal(vendor.requests.filter(isCreation).length, 1);
      assert.equal(vendor.files.size, 0);
      assert.ok(
        vendor.requests.every(({ path }) => !/chat\/completions|:generateContent$|\/messages$|\/converse$/.test(path)),
      );
    });
});

describe('a batch that is cancelled, and one that expires at its vendor, keep what has run', {
  concurrency: 3,
}, () => {
  for (const kind of kinds)
    test(kind, async () => {
      const vendor = vendors[kind];
      const running = () => vendor.batches.find(({ state }) => state === 'running');
      vendor.answer = answers[kind];
      vendor.finishes = false;
      const id = await submitted(kind);
      await until(running, 'the batch is submitted');
      assert.equal((await client.send('POST', `/batches/${id}/cancel`)).body.status, 'cancelling');
      const cancelled = await client.ended(id);
      assert.equal(cancelled.status, 'cancelled');
      assert.deepEqual(textsOf(cancelled), ['re: a', 're: b', 'unmapped', 'unmapped']);
      assert.equal(cancelled.results[3].error.type, 'batch_cancelled');
      assert.ok(cancelled.usage.cost > 0);

      const second = await submitted(kind, { provider: { allow_fallbacks: false } });
      const made = await until(running, 'the batch is submitted');
      vendor.finish(made, 'expired', 3);
      const expired = await client.ended(second);
      assert.deepEqual(textsOf(expired).slice(0, 3), ['re: a', 're: b', 're: c']);
      assert.ok(['timeout', 'provider_unavailable'].includes(textsOf(expired)[3]), textsOf(expired)[3]);
    });
});

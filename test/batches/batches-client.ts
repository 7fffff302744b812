/** A client of `/batches` for tests. */
import assert from 'node:assert/strict';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
export type Json = any;

export interface Answered {
  status: number;
  body: Json;
}

export const isFinal = (status: string) => ['completed', 'failed', 'expired', 'cancelled'].includes(status);

export function batchesOf(gateway: { readonly api: string }, key = INFERENCE_KEY) {
  const send = async (method: string, route: string, body?: unknown): Promise<Answered> => {
    const response = await fetch(gateway.api + route, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  return {
    send,
    async submitted(body: unknown): Promise<Json> {
      const { status, body: batch } = await send('POST', '/batches', body);
      assert.equal(status, 202, JSON.stringify(batch));
      return batch;
    },
    /** The batch in its final state. */
    ended: (id: string): Promise<Json> =>
      until(async () => {
        const { body } = await send('GET', `/batches/${id}`);
        return isFinal(body.status) && body;
      }, `the batch ${id} ends`),
    async refused(pending: Promise<Answered>, status: number, message: RegExp): Promise<Json> {
      const { status: is, body } = await pending;
      assert.equal(is, status, JSON.stringify(body));
      assert.match(body.error.message, message);
      return body.error;
    },
  };
}

/** Waits for a value that passes. */
export async function oncePassed<T>(
  read: () => T | Promise<T>,
  passes: (value: T) => boolean,
  what: string,
): Promise<T> {
  let value: T | undefined;
  const isPassed = async () => {
    value = await read();
    return passes(value);
  };
  await until(isPassed, what);
  return value as T;
}

/** An item for the simulated model that plays a script. */
export const scripted = (customId: string, script: object = {}) => ({
  custom_id: customId,
  body: { max_tokens: 50, messages: [{ role: 'user', content: JSON.stringify(script) }] },
});

export const chatBatch = (requests: readonly unknown[], more: object = {}) => ({
  endpoint: '/v1/chat/completions',
  model: 'simulated/script',
  requests,
  ...more,
});

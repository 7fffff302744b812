/** OpenAI's SDK as a client of batches, for tests. */
import assert from 'node:assert/strict';
import OpenAI, { toFile } from 'openai';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { isFinal, type Json, scripted } from './batches-client.ts';

export const openaiOf = (of: { readonly api: string }, apiKey = INFERENCE_KEY) =>
  new OpenAI({ baseURL: of.api, apiKey, maxRetries: 0 });

export const CHAT = '/v1/chat/completions';
export const MODEL = 'simulated/script';

/** A line of an input file, for the simulated model that plays a script. */
export const lineOf = (customId: string, script: object = {}, more: object = {}) => ({
  custom_id: customId,
  method: 'POST',
  url: CHAT,
  body: { model: MODEL, ...scripted(customId, script).body },
  ...more,
});

export const jsonl = (lines: readonly unknown[]) =>
  lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');

export async function uploaded(of: OpenAI, text: string): Promise<string> {
  return (await of.files.create({ file: await toFile(Buffer.from(text), 'input.jsonl'), purpose: 'batch' })).id;
}

export async function created(
  of: OpenAI,
  lines: readonly unknown[],
  more: Partial<OpenAI.BatchCreateParams> = {},
): Promise<OpenAI.Batch> {
  const input = await uploaded(of, jsonl(lines));
  return of.batches.create({ input_file_id: input, endpoint: CHAT, completion_window: '24h', ...more });
}

export function ended(of: OpenAI, id: string, deadlineMs?: number): Promise<OpenAI.Batch> {
  return until(
    async () => {
      const batch: OpenAI.Batch = await of.batches.retrieve(id);
      return isFinal(batch.status) ? batch : undefined;
    },
    `the batch ${id} ends`,
    deadlineMs,
  );
}

async function contentOf(of: OpenAI, id: string | null | undefined): Promise<Json[]> {
  if (id === null || id === undefined) return [];
  const text = await (await of.files.content(id)).text();
  assert.ok(text.endsWith('\n'));
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** The lines of both files, after a check that each item has exactly one. */
export async function linesOf(of: OpenAI, batch: OpenAI.Batch, ids: readonly string[]) {
  const output = await contentOf(of, batch.output_file_id);
  const errors = await contentOf(of, batch.error_file_id);
  assert.deepEqual([...output, ...errors].map((line) => line.custom_id).toSorted(), ids.toSorted());
  const { completed, failed, total } = batch.request_counts!;
  assert.deepEqual([output.length, errors.length, completed + failed], [completed, failed, total]);
  return { output, errors };
}

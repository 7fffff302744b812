/** Files of calls and results, which OpenAI and those like it have in common. */

import type { BatchAccount, UpstreamResult } from './contract.ts';
import { forget, get, type Json, listIn } from './exchange.ts';
import { objectOf } from './lines.ts';

/** Of attempts that ended before their id was stored. */
export async function removeUploads(name: string, account: BatchAccount): Promise<void> {
  const list = await get(account, '/files?purpose=batch');
  for (const file of Array.isArray(list) ? (list as Json[]) : listIn(list, 'data')) {
    if (file['filename'] === name) await forget(account, `/files/${encodeURIComponent(String(file['id']))}`);
  }
}

/** The results in lines of `custom_id`, `response` and `error`. Other lines are passed over. */
export async function* answersIn(lines: AsyncIterable<Buffer>): AsyncGenerator<UpstreamResult> {
  for await (const line of lines) {
    const result = resultOf(line);
    if (result !== undefined) yield result;
  }
}

function resultOf(line: Buffer): UpstreamResult | undefined {
  const object = objectOf(line);
  const id = object?.member('custom_id');
  if (object === undefined || typeof id !== 'string') return undefined;
  const response = objectOf(object.bytes('response') ?? Buffer.from('null'));
  const body = response?.bytes('body');
  if (response !== undefined && body !== undefined) {
    const status = Number(response.member('status_code') ?? 200);
    return { id, kind: 'answered', status, body };
  }
  const { code, message } = (object.member('error') ?? {}) as { code?: unknown; message?: unknown };
  if (code === 'batch_expired') return { id, kind: 'expired' };
  if (code === 'batch_cancelled') return { id, kind: 'cancelled' };
  return { id, kind: 'failed', message: typeof message === 'string' ? message : 'the provider gave no response' };
}

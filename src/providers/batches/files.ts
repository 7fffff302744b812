/** Files of calls and results, which OpenAI and those like it have in common. */

import { type BatchAccount, dataOf, type Submission, type UpstreamBatch, type UpstreamResult } from './contract.ts';
import { createdId, forget, forgetAll, get, type Json, listIn, open, upload } from './exchange.ts';
import { linesOf, objectOf } from './lines.ts';

interface UploadForm {
  path: string;
  /** Lists the uploads. */
  list: string;
  fields(name: string): Readonly<Record<string, string>>;
}

const FORM: UploadForm = { path: '/files', list: '/files?purpose=batch', fields: () => ({ purpose: 'batch' }) };

/** Uploads the calls, unless an earlier attempt has stored the id of its upload. Returns the id. */
export async function uploadOnce(
  submission: Submission,
  account: BatchAccount,
  form: Partial<UploadForm> = {},
): Promise<string> {
  const { path, list, fields } = { ...FORM, ...form };
  if (submission.uploadId !== null) return submission.uploadId;
  const name = `gatehouse-${submission.marker}.jsonl`;
  if (submission.isRepeated) await removeUploads(name, list, account);
  const content = await submission.content();
  const uploaded = await upload(account, path, { name, bytes: submission.bytes, content }, fields(name));
  const id = createdId(uploaded);
  await submission.uploaded(id);
  return id;
}

/** Of attempts that ended before their id was stored. */
async function removeUploads(name: string, path: string, account: BatchAccount): Promise<void> {
  const list = await get(account, path);
  for (const file of Array.isArray(list) ? (list as Json[]) : listIn(list, 'data')) {
    if (file['filename'] === name) await forget(account, `/files/${encodeURIComponent(String(file['id']))}`);
  }
}

/** Removes the upload and the files of results. Returns whether all are gone. */
export function removeFiles(
  batch: UpstreamBatch | null,
  uploadId: string | null,
  account: BatchAccount,
): Promise<boolean> {
  return forgetAll(
    account,
    dataOf(batch, uploadId).map((file) => `/files/${encodeURIComponent(file)}`),
  );
}

/** The results in files with lines of `custom_id`, `response` and `error`. Other lines are skipped. */
export async function* resultsIn(files: readonly string[], account: BatchAccount): AsyncGenerator<UpstreamResult> {
  for (const file of files) {
    const path = `/files/${encodeURIComponent(file)}/content`;
    for await (const line of linesOf(await open(account, { path, method: 'GET' }))) {
      const result = resultOf(line);
      if (result !== undefined) yield result;
    }
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

/** Answers to Google's clients, under `/v1beta/files` and `/v1/files`. */
import type { Caller } from '../../access/index.ts';
import { invalidField } from '../../base/errors.ts';
import type { Exchange } from '../../http/operation.ts';
import { publicUrl } from '../../http/public-url.ts';
import { deleteOne, fileOf, sendFile, workspaceOf } from '../chosen-file.ts';
import { listFiles } from '../store.ts';
import type { StoreParts } from '../upload.ts';
import { googleFile, idOf, nameOf } from './shape.ts';

/** As at Google. */
const DEFAULT_PAGE = 10;
const DOWNLOAD = ':download';

export async function listForGoogle(exchange: Exchange<Caller>, parts: StoreParts): Promise<void> {
  const { pageSize, pageToken } = exchange.query as { pageSize?: number; pageToken?: string };
  const after = pageToken ? idOf(pageToken) : undefined;
  if (pageToken && after === undefined) throw invalidField('pageToken', 'must be the nextPageToken of a page');
  const limit = pageSize || DEFAULT_PAGE;
  const workspaceId = await workspaceOf(exchange, parts);
  const page = { ids: undefined, after, limit: limit + 1, purpose: undefined, now: new Date(parts.clock.now()) };
  const found = await listFiles(parts.database, workspaceId, page);
  const files = found.slice(0, limit).map((file) => googleFile(file, publicUrl(exchange)));
  const more = found.length > limit && { nextPageToken: nameOf(found[limit - 1]!.id) };
  exchange.reply(200, { ...(files.length > 0 && { files }), ...more });
}

/** @param name without `files/`; with `:download` after it, the content is meant */
export async function getForGoogle(exchange: Exchange<Caller>, name: string, parts: StoreParts): Promise<void> {
  if (!name.endsWith(DOWNLOAD)) {
    exchange.reply(200, googleFile(await fileOf(exchange, idOf(name), parts), publicUrl(exchange)));
    return;
  }
  const file = await fileOf(exchange, idOf(name.slice(0, -DOWNLOAD.length)), parts);
  await sendFile(exchange, file, parts.blobs);
}

export async function deleteForGoogle(exchange: Exchange<Caller>, name: string, parts: StoreParts): Promise<void> {
  await deleteOne(exchange, await fileOf(exchange, idOf(name), parts), parts);
  exchange.reply(200, {});
}

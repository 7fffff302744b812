/** The content of a native batch once more, for a process that cannot read the one that is stored: it is on another machine. */
import { GatewayError } from '../../base/errors.ts';
import type { Blob } from '../../blobs/index.ts';
import { encodeForBatch } from '../../inference/index.ts';
import type { BatchService } from '../../providers/index.ts';
import type { Batch } from '../batch.ts';
import { acceptItem } from '../item.ts';
import { type ClaimedItem, writeResults } from '../items.sql.ts';
import { failedResult, itemErrorOf } from '../results/result.ts';
import { itemId, type NativePart } from './part.ts';
import * as sql from './parts.sql.ts';
import type { NativeParts } from './plan.ts';

const AT_ONCE = 64;

/** Stores the calls again, as they are encoded now. Items that cannot be part of it any more leave the part. */
export async function rebuildContent(
  part: NativePart,
  batch: Batch,
  service: BatchService,
  parts: NativeParts,
): Promise<{ blob: Blob; items: number }> {
  let items = 0;
  async function* content() {
    for (let after = -1; ; ) {
      const page = await sql.openItemsOf(parts.database, part, { after, limit: AT_ONCE });
      if (page.length === 0) break;
      after = page.at(-1)!.position;
      for (const item of page) {
        const call = await encoded(item, part, batch, parts);
        if (call === undefined) continue;
        const { head, between } = service.frame({ marker: part.id, model: call.model });
        yield Buffer.concat([
          Buffer.from(items === 0 ? head : between),
          service.line(itemId(part.id, item.position), call),
        ]);
        items += 1;
      }
    }
    if (items > 0) yield Buffer.from(service.frame({ marker: part.id, model: '' }).tail);
  }
  const blob = await parts.blobs.write(content());
  return { blob, items };
}

async function encoded(item: ClaimedItem, part: NativePart, batch: Batch, parts: NativeParts) {
  const { database, clock, callerOfKey, inference } = parts;
  try {
    const caller = await callerOfKey(batch.keyHash);
    const made = await encodeForBatch(acceptItem(item.body, batch, caller, part.createdAt.getTime()), inference);
    const isSame =
      made?.candidate.endpoint.id === part.endpointId &&
      (made.candidate.byok?.id ?? null) === part.byokId &&
      made.call.path === part.path;
    if (isSame) return made.call;
    const of = { claim: part.id, freeAt: new Date(clock.now()), direct: true, positions: [item.position] };
    await sql.releaseItems(database, batch.id, of);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status >= 500) throw error;
    const result = failedResult(item.position, itemErrorOf(error));
    await database.transaction((tx) => writeResults(tx, batch.id, [result]));
  }
  return undefined;
}

/** Blobs as objects of an S3 bucket. An object exists only when it is whole. */
import { Allowance } from '../../base/allowance.ts';
import { type BlobBackend, BlobUnavailable } from '../backend.ts';
import { S3Connection, type S3Options, S3Refusal } from './connection.ts';
import { contentOf, findObject } from './reading.ts';
import { sweepUploads } from './uploads.ts';
import { ObjectWriter } from './writing.ts';

export { checkBucket } from './check.ts';

/** What all writers of a process keep in memory together: more than fifty large uploads at once. */
const MEMORY_BYTES = 256 * 1024 * 1024;

export function s3Backend(options: S3Options): BlobBackend {
  const s3 = new S3Connection(options);
  const memory = new Allowance(MEMORY_BYTES);
  const keyOf = (id: string) => s3.prefix + id;
  return {
    kind: 's3',
    location: s3.location,
    async write(id, content) {
      const writer = new ObjectWriter(s3, keyOf(id), memory);
      try {
        for await (const chunk of content) await writer.add(chunk);
        await writer.finish();
      } catch (error) {
        const failed = error instanceof S3Refusal || error instanceof BlobUnavailable;
        // A bucket that just failed is not waited for once more: `sweep` finds the parts.
        await writer.abandon({ removeParts: !failed });
        if (!(error instanceof S3Refusal)) throw error;
        throw new BlobUnavailable(`${s3.location} refused a write: ${error.code}`, { cause: error });
      }
    },
    async read(id, range) {
      const found = await findObject(s3, keyOf(id));
      return contentOf(s3, keyOf(id), found, range);
    },
    async remove(id) {
      const target = { Bucket: s3.bucket, Key: keyOf(id) };
      await s3.send((client) => client.deleteObject(target));
    },
    sweep: (before) => sweepUploads(s3, before),
    close: () => s3.close(),
  };
}

/** Tries the bucket out, for `gatehouse doctor`. */
import { createHash, randomUUID } from 'node:crypto';
import { S3Connection, type S3Options, S3Refusal } from './connection.ts';

const BODY = 'doctor';
const CHECKSUM = createHash('sha256').update(BODY).digest('base64');

/**
 * Writes, reads and removes an object.
 * @returns what the bucket lacks; undefined when it has all that is needed
 * @throws BlobUnavailable
 */
export async function checkBucket(options: S3Options): Promise<string | undefined> {
  const s3 = new S3Connection(options);
  const target = { Bucket: s3.bucket, Key: `${s3.prefix}doctor-${randomUUID()}` };
  const write = () =>
    s3.send((client) => client.putObject({ ...target, Body: BODY, ChecksumSHA256: CHECKSUM, IfNoneMatch: '*' }));
  try {
    await write();
    const refused = await write().then(
      () => false,
      (error: unknown) => {
        if (error instanceof S3Refusal) return true;
        throw error;
      },
    );
    await s3.send((client) => client.getObject({ ...target, Range: 'bytes=0-0' }));
    await s3.send((client) => client.listMultipartUploads({ Bucket: s3.bucket }));
    return refused ? undefined : 'the service ignores conditional writes (If-None-Match)';
  } finally {
    await s3.send((client) => client.deleteObject(target)).catch(() => undefined);
    await s3.close();
  }
}

/** Reads one object, or a range of it, as a stream. A connection that breaks is continued where it ended. */
import type { Readable } from 'node:stream';
import { BlobMissing, BlobUnavailable } from '../backend.ts';
import { type S3Connection, S3Refusal } from './connection.ts';

/** Broken connections in a row, without a byte between them. */
const MOST_BREAKS = 3;

/** Of the object as it is now, so that one stream never mixes two. */
interface FoundObject {
  bytes: number;
  etag: string | undefined;
}

export async function findObject(s3: S3Connection, key: string): Promise<FoundObject> {
  try {
    const { ContentLength, ETag } = await s3.send((client) => client.headObject({ Bucket: s3.bucket, Key: key }));
    return { bytes: ContentLength ?? 0, etag: ETag };
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    await checkBucket(s3);
    throw new BlobMissing(key, s3.location, error);
  }
}

/** The response to HEAD has no body, so it does not tell a missing bucket from a missing object. */
async function checkBucket(s3: S3Connection): Promise<void> {
  try {
    await s3.send((client) => client.headBucket({ Bucket: s3.bucket }));
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    throw new BlobUnavailable(`${s3.location} cannot be used: the bucket does not exist`, { cause: error });
  }
}

/** Connects when the first byte is wanted, because a reader that never begins would keep the connection. */
export async function* contentOf(
  s3: S3Connection,
  key: string,
  { bytes, etag }: FoundObject,
  range: { start: number; end: number } | undefined,
): AsyncGenerator<Buffer> {
  const end = Math.min(range?.end ?? bytes, bytes);
  let at = range?.start ?? 0;
  for (let breaks = 0; at < end; breaks += 1) {
    const body = await open(s3, key, etag, at, end);
    try {
      for await (const chunk of body) {
        at += chunk.length;
        breaks = 0;
        yield chunk;
      }
      if (at < end) throw new Error('the response ended early');
    } catch (error) {
      if (breaks >= MOST_BREAKS)
        throw new BlobUnavailable(`${s3.location} breaks off while it is read`, { cause: error });
    } finally {
      body.destroy();
    }
  }
}

async function open(
  s3: S3Connection,
  key: string,
  etag: string | undefined,
  start: number,
  end: number,
): Promise<Readable> {
  try {
    const { Body } = await s3.send((client) =>
      client.getObject({ Bucket: s3.bucket, Key: key, Range: `bytes=${start}-${end - 1}`, IfMatch: etag }),
    );
    return Body as Readable;
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    throw new BlobMissing(key, s3.location, error);
  }
}

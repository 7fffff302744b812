/** Multipart uploads of processes that died: invisible, and paid for until they are aborted. */
import type * as S3 from '@aws-sdk/client-s3';
import { isUuid } from '../../base/ids.ts';
import { type S3Connection, S3Refusal } from './connection.ts';

/** Aborts the uploads under our prefix that began before `before`. Leaves those alone whose key is not one of ours. */
export async function sweepUploads(s3: S3Connection, before: Date): Promise<void> {
  let next: Pick<S3.ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | undefined = {};
  while (next !== undefined) {
    const page: S3.ListMultipartUploadsCommandOutput = await list(s3, next);
    for (const { Key = '', UploadId, Initiated } of page.Uploads ?? []) {
      const isOurs = Key.startsWith(s3.prefix) && isUuid(Key.slice(s3.prefix.length));
      if (isOurs && UploadId !== undefined && Initiated !== undefined && Initiated < before) {
        await abort(s3, Key, UploadId);
      }
    }
    next = page.IsTruncated ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker } : undefined;
  }
}

function list(s3: S3Connection, after: Pick<S3.ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'>) {
  const input = { Bucket: s3.bucket, ...(s3.prefix !== '' && { Prefix: s3.prefix }), ...after };
  return s3.send((client) => client.listMultipartUploads(input));
}

async function abort(s3: S3Connection, Key: string, UploadId: string): Promise<void> {
  const upload = { Bucket: s3.bucket, Key, UploadId };
  try {
    await s3.send((client) => client.abortMultipartUpload(upload));
  } catch (error) {
    // Another process has aborted it.
    if (!(error instanceof S3Refusal)) throw error;
  }
}

/** Where uploaded files are: the bucket, and content that is in a place that is no longer configured. */
import path from 'node:path';
import type { Config } from '../../base/config.ts';
import { BlobUnavailable, checkBucket, countBlobs } from '../../blobs/index.ts';
import type { Database } from '../../storage/database.ts';
import { type Finding, fault, note, ok } from './finding.ts';

/** Writes, reads and removes an object. */
export async function examineBucket({ blobs: { s3 }, outgoing }: Config): Promise<Finding[]> {
  if (s3 === null) return [];
  const advice = 'check the settings of blobs.s3 or GATEHOUSE_S3_*, the credentials and the network';
  try {
    const lacking = await checkBucket({ ...s3, extraCa: outgoing.extraCa });
    const place = `s3://${s3.bucket}/${s3.prefix}`;
    if (lacking !== undefined) return [note('files', `${place}: ${lacking}`)];
    return [ok('files', `${place} can be written, read and cleaned`)];
  } catch (error) {
    if (!(error instanceof BlobUnavailable)) throw error;
    return [fault('files', error.message, advice)];
  }
}

export async function examineBlobs({ blobs: { s3 }, dataDir }: Config, database: Database): Promise<Finding[]> {
  return (await countBlobs(database)).flatMap(({ backend, count }) => {
    if (backend === 's3' && s3 === null) {
      const message = `the content of ${count} files is in an S3 bucket, and none is configured`;
      return [fault('files', message, 'set blobs.s3 or GATEHOUSE_S3_BUCKET to that bucket')];
    }
    if (backend === 'disk' && s3 !== null) {
      const folder = path.join(dataDir, 'blobs');
      return [note('files', `the content of ${count} files from before the bucket is still in ${folder}: keep it`)];
    }
    return [];
  });
}

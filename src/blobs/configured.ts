/** The backends that the configuration names. */
import path from 'node:path';
import type { Config } from '../base/config.ts';
import type { BlobBackend } from './backend.ts';
import { diskBackend } from './disk.ts';
import { s3Backend } from './s3/index.ts';

/** The folder stays readable next to a bucket, for blobs from before the bucket was configured. */
export function configuredBackends({
  blobs: { s3 },
  dataDir,
  outgoing,
}: Pick<Config, 'blobs' | 'dataDir' | 'outgoing'>): { backend: BlobBackend; others: readonly BlobBackend[] } {
  const disk = diskBackend(path.join(dataDir, 'blobs'));
  if (s3 === null) return { backend: disk, others: [] };
  return { backend: s3Backend({ ...s3, extraCa: outgoing.extraCa }), others: [disk] };
}

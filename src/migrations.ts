/** Every migration, one line per folder; the numbers in their names give the order. */
import { accessMigrations } from './access/index.ts';
import { auditMigrations } from './audit/index.ts';
import { batchMigrations } from './batches/index.ts';
import { blobMigrations } from './blobs/index.ts';
import { byokMigrations } from './byok/index.ts';
import { cacheMigrations } from './cache/index.ts';
import { statisticsMigrations } from './catalog/index.ts';
import { consoleMigrations } from './console/index.ts';
import { containerMigrations } from './containers/index.ts';
import { destinationMigrations } from './destinations/index.ts';
import { fileMigrations } from './files/index.ts';
import { guardrailMigrations } from './guardrails/index.ts';
import { inferenceMigrations } from './inference/index.ts';
import { internMigrations } from './interns/index.ts';
import { memoryMigrations } from './memories/index.ts';
import { presetMigrations } from './presets/index.ts';
import { rateLimitMigrations } from './rate-limits/index.ts';
import { responseMigrations } from './responses/index.ts';
import { scimMigrations } from './scim/index.ts';
import { sealingMigrations } from './sealing/index.ts';
import { signInMigrations } from './sign-in/index.ts';
import { spendMigrations } from './spend/index.ts';
import type { Migration } from './storage/migrate.ts';
import { transcriptMigrations } from './transcripts/index.ts';
import { vaultMigrations } from './vault/index.ts';
import { vectorStoreMigrations } from './vector-stores/index.ts';
import { videoMigrations } from './videos/index.ts';
import { workspaceMigrations } from './workspaces/index.ts';

export const migrations: readonly Migration[] = [
  ...accessMigrations,
  ...spendMigrations,
  ...inferenceMigrations,
  ...workspaceMigrations,
  ...guardrailMigrations,
  ...statisticsMigrations,
  ...cacheMigrations,
  ...transcriptMigrations,
  ...sealingMigrations,
  ...byokMigrations,
  ...rateLimitMigrations,
  ...signInMigrations,
  ...scimMigrations,
  ...auditMigrations,
  ...blobMigrations,
  ...fileMigrations,
  ...batchMigrations,
  ...vaultMigrations,
  ...internMigrations,
  ...consoleMigrations,
  ...destinationMigrations,
  ...containerMigrations,
  ...responseMigrations,
  ...memoryMigrations,
  ...presetMigrations,
  ...videoMigrations,
  ...vectorStoreMigrations,
];

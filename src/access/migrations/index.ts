/** The tables of access, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { organizations } from './0010-organizations.ts';
import { apiKeys } from './0011-api-keys.ts';
import { workspacesEnd } from './0012-workspaces-end.ts';
import { keyRateLimits } from './0013-key-rate-limits.ts';
import { keyAliases } from './0014-key-aliases.ts';
import { keyLimitOfNothing } from './0015-key-limit-of-nothing.ts';
import { internKeys } from './0016-intern-keys.ts';

export const accessMigrations: readonly Migration[] = [
  organizations,
  apiKeys,
  workspacesEnd,
  keyRateLimits,
  keyAliases,
  keyLimitOfNothing,
  internKeys,
];

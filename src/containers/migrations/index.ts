/** The tables of containers, for `storage/migrate.ts`. */
import type { Migration } from '../../storage/migrate.ts';
import { containers } from './0230-containers.ts';
import { unsavedContainers } from './0231-unsaved-containers.ts';

export const containerMigrations: readonly Migration[] = [containers, unsavedContainers];

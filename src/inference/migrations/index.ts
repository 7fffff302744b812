import type { Migration } from '../../storage/migrate.ts';
import { installationSecrets } from './0040-installation-secrets.ts';

export const inferenceMigrations: readonly Migration[] = [installationSecrets];

import type { Migration } from '../../storage/migrate.ts';
import { presets } from './0260-presets.ts';

export const presetMigrations: readonly Migration[] = [presets];

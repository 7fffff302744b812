import type { Migration } from '../../storage/migrate.ts';
import { memories } from './0250-memories.ts';
import { sealedMemories } from './0251-sealed-memories.ts';

export const memoryMigrations: readonly Migration[] = [memories, sealedMemories];

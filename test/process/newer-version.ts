/** Loaded before the gateway (`--import`), it is the next version: its schema has one migration more. */
import { registerHooks } from 'node:module';
import { NEXT_MIGRATION } from './next-migration.ts';

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith('/src/migrations.ts')) return loaded;
    const source = String(loaded.source).replace(/\];\s*$/, `  ${JSON.stringify(NEXT_MIGRATION)},\n];\n`);
    return { ...loaded, source };
  },
});

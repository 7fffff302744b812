/**
 * Starts `main.ts` in the sources. Not in TypeScript itself, so that compiled code is kept from the first TypeScript file on:
 * Node.js then finds all of it compiled, and never loads its compiler, which would take 17 MB.
 */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/gatehouse', import.meta.url)));
await import('./main.ts');

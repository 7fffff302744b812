/** Facts newer than the package: how they are fetched (`refresh.ts`) and stored (`data-file.ts`). */
import type { CatalogCommandParts } from './command.ts';

export type { CatalogCommandParts } from './command.ts';
export { loadFacts } from './data-file.ts';
export { CATALOG_HELP } from './help.ts';

/** Loaded on demand, because a serving gateway does not need it. @returns the exit code, see `command.ts` */
export async function runCatalogCommand(args: readonly string[], parts: CatalogCommandParts): Promise<number> {
  const command = await import('./command.ts');
  return command.runCatalogCommand(args, parts);
}

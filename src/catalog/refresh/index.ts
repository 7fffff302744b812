/** The facts that are newer than the package: how they come (`refresh.ts`) and where they stand (`data-file.ts`). */
import type { CatalogCommandParts } from './command.ts';

export type { CatalogCommandParts } from './command.ts';
export { loadFacts } from './data-file.ts';
export { CATALOG_HELP } from './help.ts';

/** Loaded when it is typed: no gateway that serves needs it. @returns the exit code, as `command.ts` says */
export async function runCatalogCommand(args: readonly string[], parts: CatalogCommandParts): Promise<number> {
  const command = await import('./command.ts');
  return command.runCatalogCommand(args, parts);
}

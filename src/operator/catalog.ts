/** `gatehouse catalog`: the model catalog in the data directory. */
import { CATALOG_HELP, runCatalogCommand } from '../catalog/index.ts';
import { createTransport, outgoingOf } from '../providers/index.ts';
import { type CommandParts, UsageError } from './command.ts';

export { CATALOG_HELP };

export async function catalogCommand(
  args: readonly string[],
  { config, clock, log, out }: CommandParts,
): Promise<number> {
  const transport = createTransport({ clock, log, ...outgoingOf(config) });
  try {
    const status = await runCatalogCommand(args, { config, transport, clock, log, print: (line) => out.print(line) });
    if (status === 2) throw new UsageError('expected catalog refresh or catalog show');
    return status;
  } finally {
    await transport.close();
  }
}

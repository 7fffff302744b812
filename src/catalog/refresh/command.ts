/** The commands `gatehouse catalog refresh` and `gatehouse catalog show`. */
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import { KINDS, providersFrom, type Transport } from '../../providers/index.ts';
import { FetchError } from './collect.ts';
import { loadFacts } from './data-file.ts';
import { type Refreshed, refreshCatalog } from './refresh.ts';

export interface CatalogCommandParts {
  config: Pick<Config, 'dataDir' | 'catalogUrl' | 'providers'>;
  transport: Transport;
  clock: Clock;
  log: Log;
  print(line: string): void;
}

const MOST_LINES = 20;

/** @returns the exit code: 0, 1 if the refresh failed, 2 for wrong arguments (prints nothing) */
export async function runCatalogCommand(args: readonly string[], parts: CatalogCommandParts): Promise<number> {
  const [verb, ...rest] = args;
  if (rest.length === 0 && verb === 'show') return show(parts);
  if (rest.length === 0 && verb === 'refresh') return refresh(parts);
  return 2;
}

function show({ config, log, print }: CatalogCommandParts): number {
  const { date, models, listed } = loadFacts(config.dataDir, log);
  print(`${models.length} models, as of ${date}`);
  for (const [provider, names] of Object.entries(listed)) print(`${provider} lists ${names.length}`);
  return 0;
}

async function refresh({ config, transport, clock, log, print }: CatalogCommandParts): Promise<number> {
  try {
    const refreshed = await refreshCatalog({
      dataDir: config.dataDir,
      registryUrl: config.catalogUrl,
      settings: config.providers,
      providers: providersFrom(config),
      kinds: KINDS,
      transport,
      clock,
      log,
    });
    report(refreshed, print);
    return 0;
  } catch (error) {
    if (!(error instanceof FetchError || error instanceof RangeError || isFileFault(error))) throw error;
    print(`The catalog is unchanged: ${(error as Error).message}.`);
    return 1;
  }
}

function report({ models, added, repriced, refused, listed, file }: Refreshed, print: (line: string) => void): void {
  some(added, 'new', print);
  some(repriced, 'price', print);
  if (refused > 0) print(`${refused} models of the registry were skipped as invalid`);
  for (const [provider, count] of Object.entries(listed)) {
    print(typeof count === 'number' ? `${provider} lists ${count} models` : `${provider} has no list: it ${count}`);
  }
  print(`${models} models are in ${file}. A running gateway loads them on SIGHUP or at its next start.`);
}

function some(lines: readonly string[], what: string, print: (line: string) => void): void {
  for (const line of lines.slice(0, MOST_LINES)) print(`${what}: ${line}`);
  if (lines.length > MOST_LINES) print(`${what}: ${lines.length - MOST_LINES} more`);
}

function isFileFault(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).code === 'string';
}

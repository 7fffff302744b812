/** The inputs of a command, and its usage errors. */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { SealedRows } from '../sealing/index.ts';
import type { Migration } from '../storage/migrate.ts';

export interface CommandParts {
  config: Config;
  clock: Clock;
  log: Log;
  /** Every migration of this version. */
  migrations: readonly Migration[];
  /** Every encrypted column. */
  sealedRows: readonly SealedRows[];
  out: Output;
  /** Of this gateway. */
  version: string;
}

interface Output {
  readonly isTTY: boolean;
  print(line: string): void;
}

/** Wrong arguments; the message is printed with the help of the command. */
export class UsageError extends Error {}

interface Arguments {
  values: Record<string, string | boolean | undefined>;
  positionals: string[];
}

/** Throws UsageError for unknown options, and for positional arguments where none are allowed. */
export function parseArguments(
  args: readonly string[],
  options: NonNullable<ParseArgsConfig['options']>,
  allowPositionals = false,
): Arguments {
  try {
    return parseArgs({ args: [...args], options, allowPositionals, strict: true }) as Arguments;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

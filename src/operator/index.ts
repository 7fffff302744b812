/**
 * Commands other than `serve`: keys, backups, doctor and others. A command works on the installation that the settings name,
 * whether a gateway runs on it or not; `batch` is a client of a running gateway, `conformance` of any.
 */
import { systemClock } from '../base/clock.ts';
import type { Config } from '../base/config.ts';
import { createLog } from '../base/log.ts';
import type { SealedRows } from '../sealing/index.ts';
import type { Migration } from '../storage/migrate.ts';
import { BACKUP_HELP, backupCommand, restoreCommand } from './backup.ts';
import { BATCH_HELP, batchCommand } from './batch.ts';
import { CATALOG_HELP, catalogCommand } from './catalog.ts';
import { type CommandParts, UsageError } from './command.ts';
import { CONFORMANCE_HELP, conformanceCommand } from './conformance.ts';
import { CREDITS_HELP, creditsCommand } from './credits.ts';
import { DOCTOR_HELP, doctorCommand } from './doctor.ts';
import { FEDERATION_HELP, federationCommand } from './federation.ts';
import { IMPORT_HELP, importCommand } from './import.ts';
import { KEYS_HELP, keysCommand } from './keys.ts';
import { SCIM_HELP, scimCommand } from './scim.ts';
import { SEALING_HELP, sealingCommand } from './sealing.ts';
import { SPEND_HELP, spendCommand } from './spend.ts';
import { VAULT_HELP, vaultCommand } from './vault.ts';

export type { Finding } from './doctor/finding.ts';
export { examineRunning } from './doctor/while-running.ts';

type Command = (args: readonly string[], parts: CommandParts, config: Machine['config']) => Promise<number>;

const COMMANDS: Readonly<Record<string, { run: Command; help: string }>> = {
  keys: { run: keysCommand, help: KEYS_HELP },
  credits: { run: creditsCommand, help: CREDITS_HELP },
  spend: { run: spendCommand, help: SPEND_HELP },
  scim: { run: scimCommand, help: SCIM_HELP },
  federation: { run: federationCommand, help: FEDERATION_HELP },
  sealing: { run: sealingCommand, help: SEALING_HELP },
  vault: { run: vaultCommand, help: VAULT_HELP },
  backup: { run: backupCommand, help: BACKUP_HELP },
  restore: { run: restoreCommand, help: BACKUP_HELP },
  doctor: { run: doctorCommand, help: DOCTOR_HELP },
  catalog: { run: catalogCommand, help: CATALOG_HELP },
  import: { run: importCommand, help: IMPORT_HELP },
  batch: { run: batchCommand, help: BATCH_HELP },
  conformance: { run: conformanceCommand, help: CONFORMANCE_HELP },
};

interface Machine {
  /** Reads the settings; throws ConfigError. */
  config(): Config;
  migrations: readonly Migration[];
  sealedRows: readonly SealedRows[];
  version: string;
}

export function isCommand(name: string): boolean {
  return Object.hasOwn(COMMANDS, name);
}

/** All of them, for `gatehouse help`. */
export function commandHelp(): string {
  return [...new Set(Object.values(COMMANDS).map(({ help }) => help))].join('\n');
}

/**
 * Runs a command with the settings of this machine and returns its exit code: 0, 1 on failure, 2 for wrong
 * arguments; `batch` has more. Results go to stdout, errors to stderr.
 */
export async function runCommand(name: string, args: readonly string[], machine: Machine): Promise<number> {
  const command = COMMANDS[name]!;
  if (args.includes('--help') || args.includes('-h')) {
    console.log(command.help);
    return 0;
  }
  let config: Config | undefined;
  const parts: CommandParts = {
    // Read on first use, because the doctor reports their problems itself.
    get config() {
      config ??= machine.config();
      return config;
    },
    clock: systemClock,
    // Only errors: the output is for people and scripts.
    log: createLog({ stream: process.stderr, level: 'error', clock: systemClock }),
    migrations: machine.migrations,
    sealedRows: machine.sealedRows,
    version: machine.version,
    out: { isTTY: process.stdout.isTTY === true, print: (line) => console.log(line) },
  };
  try {
    return await command.run(args, parts, machine.config);
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`${error.message}\n\n${command.help}`);
      return 2;
    }
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
}

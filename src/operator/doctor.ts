/**
 * `gatehouse doctor`: checks everything that a gateway needs, before or while it runs. Changes nothing, except
 * that it writes an object to a configured bucket and removes it; a stopped embedded database is started for the check.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { ConfigError } from '../base/config.ts';
import { socketFolderOf } from '../storage/embedded.ts';
import { type CommandParts, UsageError } from './command.ts';
import { examineBucket } from './doctor/blobs.ts';
import { examineDatabase } from './doctor/database.ts';
import { examineEgressProxy } from './doctor/egress-proxy.ts';
import { type Finding, fault, note, ok } from './doctor/finding.ts';
import { examineAddress, examineJournals, examineRuntime } from './doctor/machine.ts';
import { examineProviders } from './doctor/providers.ts';
import { examineSettings } from './doctor/settings.ts';
import { type Installation, withInstallation } from './installation.ts';

export const DOCTOR_HELP = `gatehouse doctor [--json] [--offline]
    checks configuration, disk, database, keys, providers, modules, sandboxes and their egress proxy; exits with 1 if something keeps
    the gateway from working. --offline skips the providers and the S3 bucket`;

export async function doctorCommand(
  args: readonly string[],
  parts: Omit<CommandParts, 'config'>,
  config: () => CommandParts['config'],
): Promise<number> {
  const unknown = args.find((arg) => arg !== '--json' && arg !== '--offline');
  if (unknown !== undefined) throw new UsageError(`unknown: ${unknown}`);
  const findings = await examine(parts, config, args.includes('--offline'));
  if (args.includes('--json')) parts.out.print(JSON.stringify({ findings }, null, 2));
  else for (const finding of findings) print(finding, parts.out.print);
  return findings.some(({ level }) => level === 'fault') ? 1 : 0;
}

async function examine(
  parts: Omit<CommandParts, 'config'>,
  read: () => CommandParts['config'],
  offline: boolean,
): Promise<Finding[]> {
  const findings = [examineRuntime()];
  let config: CommandParts['config'];
  try {
    config = read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Without settings the other checks have no target.
    return findings.concat(error.message.split('\n').map((problem) => fault('configuration', problem)));
  }
  findings.push(...(await examineSettings(config, parts)), ...examineJournals(config.dataDir));
  const blocked = findings.some(({ level, area }) => level === 'fault' && area !== 'network');
  if (!blocked) findings.push(...(await examineInstallation({ ...parts, config })));
  if (!blocked) findings.push(await examineEgressProxy(config, parts));
  if (!offline) findings.push(...(await examineBucket(config)));
  if (!offline) findings.push(...(await examineProviders(config, parts.clock, parts.log)));
  return findings;
}

async function examineInstallation(parts: CommandParts): Promise<Finding[]> {
  const { databaseUrl, dataDir } = parts.config;
  if (databaseUrl === null && !existsSync(path.join(socketFolderOf(dataDir), 'PG_VERSION'))) {
    return [note('database', 'does not exist yet: the first start creates it'), await examineAddress(parts.config)];
  }
  const examineOpen = async (installation: Installation) => {
    const { running } = installation;
    const address = running ? ok('network', 'a gateway runs on this data folder') : await examineAddress(parts.config);
    return [address, ...(await examineDatabase(parts, installation))];
  };
  try {
    return await withInstallation(parts, examineOpen);
  } catch (error) {
    return [fault('database', (error as Error).message)];
  }
}

const MARKS = { ok: 'ok   ', note: 'note ', fault: 'FAULT' };

function print({ level, area, message, advice }: Finding, line: (text: string) => void): void {
  line(`${MARKS[level]} ${area}: ${message}`);
  if (advice !== undefined) line(`      ${advice}`);
}

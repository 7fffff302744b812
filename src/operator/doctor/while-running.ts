/**
 * The checks of the doctor that make sense in a gateway that runs. It reports itself whether notifications of changes arrive
 * (`GET /ready`), and its address is in use.
 */
import type { Target } from '../../storage/connection.ts';
import type { Database } from '../../storage/database.ts';
import type { CommandParts } from '../command.ts';
import { examineBucket } from './blobs.ts';
import { examineContents, examineServer } from './database.ts';
import { type Finding, fault } from './finding.ts';
import { examineRuntime } from './machine.ts';
import { examineProviders } from './providers.ts';
import { examineSettings } from './settings.ts';

interface RunningGateway extends Pick<CommandParts, 'config' | 'clock' | 'log' | 'sealedRows'> {
  database: Database;
  target: Target;
}

/** @param online also asks every provider for its models, and writes an object to a configured bucket and removes it */
export async function examineRunning(gateway: RunningGateway, online: boolean): Promise<Finding[]> {
  const { config, clock, log } = gateway;
  const [settings, database, ...outside] = await Promise.all([
    examineSettings(config, gateway),
    examineDatabaseOf(gateway),
    ...(online ? [examineBucket(config), examineProviders(config, clock, log)] : []),
  ]);
  return [examineRuntime(), ...settings, ...database, ...outside.flat()];
}

async function examineDatabaseOf(gateway: RunningGateway): Promise<Finding[]> {
  const { database, target } = gateway;
  try {
    return [...(await examineServer(gateway, target, database)), ...(await examineContents(gateway, database))];
  } catch (error) {
    return [fault('database', (error as Error).message, 'check DATABASE_URL, the network and the server')];
  }
}

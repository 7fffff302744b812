/** Settings that a start needs before it reads the configuration. */
import path from 'node:path';
import type { Level } from '../log.ts';
import type { Secret } from '../secret.ts';
import { Environment, type Inputs } from './environment.ts';
import type { Problem } from './problems.ts';

/** Data directory, database and log settings. */
export interface BootstrapConfig {
  /** Absolute. */
  dataDir: string;
  /** null: the embedded PostgreSQL, in the data folder. */
  databaseUrl: Secret | null;
  logLevel: Level;
}

/** From the environment only; undefined on a mistake, which `loadConfig` then reports with all others. */
export function loadBootstrapConfig(inputs: Inputs): BootstrapConfig | undefined {
  const problems: Problem[] = [];
  const environment = new Environment(inputs, problems);
  const bootstrap = bootstrapConfigOf(environment, inputs.cwd);
  return problems.length === 0 ? bootstrap : undefined;
}

export function bootstrapConfigOf(environment: Environment, cwd: string): BootstrapConfig {
  return {
    dataDir: path.resolve(cwd, environment.text('GATEHOUSE_DATA_DIR')),
    databaseUrl: environment.databaseUrl(),
    logLevel: environment.logLevel(),
  };
}

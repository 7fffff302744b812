/** What a start needs before it has read the configuration. */
import path from 'node:path';
import type { Level } from '../log.ts';
import type { Secret } from '../secret.ts';
import { Environment, type Inputs } from './environment.ts';
import type { Problem } from './problems.ts';

/** Where a gateway lives and where it tells about itself. */
export interface Place {
  /** Absolute. */
  dataDir: string;
  /** null: the embedded PostgreSQL, in the data folder. */
  databaseUrl: Secret | null;
  logLevel: Level;
}

/** Of the environment alone; undefined when something in it is wrong, which `loadConfig` then tells with everything else. */
export function loadPlace(inputs: Inputs): Place | undefined {
  const problems: Problem[] = [];
  const environment = new Environment(inputs, problems);
  const place = placeOf(environment, inputs.cwd);
  return problems.length === 0 ? place : undefined;
}

export function placeOf(environment: Environment, cwd: string): Place {
  return {
    dataDir: path.resolve(cwd, environment.text('GATEHOUSE_DATA_DIR')),
    databaseUrl: environment.databaseUrl(),
    logLevel: environment.logLevel(),
  };
}

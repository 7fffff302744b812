/** The drivers, and the choice between them. */
import type { Clock } from '../base/clock.ts';
import type { SandboxesSettings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { EgressProxy } from '../egress-proxy/index.ts';
import type { DriverProblem, SandboxDriver } from './driver.ts';
import { noDriver } from './none.ts';

/** What drivers need of the gateway. */
export interface DriverParts {
  settings: SandboxesSettings;
  dataDir: string;
  egressProxy: EgressProxy;
  clock: Clock;
  log: Log;
}

export interface DriverChoice {
  /** As in the yaml. */
  name: string;
  /** Whether the setting `auto` tries it. */
  automatic: boolean;
  /** Loads and makes it, without looking at the machine. */
  load(parts: DriverParts): Promise<SandboxDriver>;
}

/** In the order in which `auto` tries them. Each is loaded when it is tried. */
export const DRIVERS: readonly DriverChoice[] = [];

const TURNED_OFF: DriverProblem = { message: 'sandboxes.driver is none', remedy: 'set it to auto in the yaml file' };
const NO_DRIVER: DriverProblem = { message: 'this version has no driver for sandboxes', remedy: 'update the gateway' };

/** Those that the setting allows. */
export async function allowedDrivers(parts: DriverParts, choices = DRIVERS): Promise<SandboxDriver[]> {
  const { driver: setting } = parts.settings;
  const allowed = choices.filter(({ name, automatic }) => (setting === 'auto' ? automatic : setting === name));
  return Promise.all(allowed.map(({ load }) => load(parts)));
}

/** The first that can isolate code; otherwise the one that refuses everything. */
export async function chooseDriver(
  setting: SandboxesSettings['driver'],
  drivers: readonly SandboxDriver[],
): Promise<SandboxDriver> {
  if (setting === 'none') return noDriver([TURNED_OFF]);
  const problems: DriverProblem[] = [];
  for (const driver of drivers) {
    const examined = await driver.examine();
    if (examined.isolation !== null) return driver;
    problems.push(...examined.problems);
  }
  return noDriver(problems.length > 0 ? problems : [NO_DRIVER]);
}

/** The drivers, and the choice between them. */
import type { SandboxesSettings } from '../base/config.ts';
import { BubblewrapDriver } from './bubblewrap/index.ts';
import type { DriverParts, DriverProblem, Examination, SandboxDriver } from './driver.ts';
import { noDriver } from './none.ts';

export interface DriverChoice {
  /** As in the yaml. */
  name: string;
  /** Whether the setting `auto` tries it. */
  automatic: boolean;
  /** Loads and makes it, without looking at the machine. */
  load(parts: DriverParts): Promise<SandboxDriver>;
}

/** In the order in which `auto` tries them. Each is made when it is tried. */
export const DRIVERS: readonly DriverChoice[] = [
  { name: 'bubblewrap', automatic: true, load: async (parts) => new BubblewrapDriver(parts) },
  {
    name: 'kubernetes',
    automatic: false,
    load: async (parts) => new (await import('./kubernetes/index.ts')).KubernetesDriver(parts),
  },
];

const TURNED_OFF: DriverProblem = { message: 'sandboxes.driver is none', remedy: 'set it to auto in the yaml file' };

/** Those that the setting allows. */
export async function allowedDrivers(parts: DriverParts, choices = DRIVERS): Promise<SandboxDriver[]> {
  const { driver: setting } = parts.settings;
  const allowed = choices.filter(({ name, automatic }) => (setting === 'auto' ? automatic : setting === name));
  return Promise.all(allowed.map(({ load }) => load(parts)));
}

/** What isolates sandboxes with these settings, if anything does. */
export async function examineSandboxes(parts: DriverParts): Promise<Examination> {
  return (await chooseDriver(parts.settings.driver, await allowedDrivers(parts))).examine();
}

/** The first that can isolate code; otherwise the one that refuses everything. */
export async function chooseDriver(
  setting: SandboxesSettings['driver'],
  drivers: readonly SandboxDriver[],
): Promise<SandboxDriver> {
  if (setting === 'none') return noDriver([TURNED_OFF]);
  const problems: DriverProblem[] = [];
  let mayChange = false;
  for (const driver of drivers) {
    const examined = await driver.examine();
    if (examined.isolation !== null) return driver;
    problems.push(...examined.problems);
    mayChange ||= examined.mayChange === true;
  }
  return noDriver(problems, mayChange);
}

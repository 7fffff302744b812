/** Checks what a sandbox is asked for, before any driver sees it. */
import type { SandboxesSettings } from '../base/config.ts';
import { invalidField } from '../base/errors.ts';
import { isReservedVariable } from '../egress-proxy/index.ts';
import type { Command, SandboxLimits, SandboxOptions } from './sandbox.ts';

const ID = /^[a-z][a-z0-9-]{0,39}$/;
const PROGRAM = /^[a-z0-9][a-z0-9-]{0,39}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const LONGEST_OWNER = 200;
const MOST_VARIABLES = 512;
const LONGEST_VALUE = 64 * 1024;
/** Below Linux's limit for one argument. */
const LONGEST_ARGUMENT = 128 * 1024 - 1;
const MOST_ARGUMENT_BYTES = 1024 * 1024;
const LONGEST_PATH = 4095;

/** @throws GatewayError 400 with the path of the field */
export function checkOptions({ id, owner, environment = {}, programs = [] }: SandboxOptions): void {
  checkId(id);
  if (owner === '' || owner.length > LONGEST_OWNER || /\p{Cc}/u.test(owner)) {
    throw invalidField('owner', `must have 1 to ${LONGEST_OWNER} characters, no control characters`);
  }
  checkEnvironment(environment);
  const names = new Set<string>();
  for (const [index, { name, path }] of programs.entries()) {
    if (!PROGRAM.test(name))
      throw invalidField(`programs[${index}].name`, 'must be lower-case letters, digits and dashes');
    if (names.has(name)) throw invalidField(`programs[${index}].name`, 'occurs twice');
    if (!isAbsolute(path)) throw invalidField(`programs[${index}].path`, 'must be an absolute path');
    names.add(name);
  }
}

/** @throws GatewayError 400 */
export function checkId(id: string): void {
  if (!ID.test(id)) {
    throw invalidField('id', 'must be 1 to 40 lower-case letters, digits and dashes, a letter first');
  }
}

/** @throws GatewayError 400 with the path of the field */
export function checkCommand({ argv, cwd, environment = {}, timeoutMs, outputBytes }: Command): void {
  if (argv[0] === '') throw invalidField('argv[0]', 'must not be empty');
  let bytes = 0;
  for (const [index, argument] of argv.entries()) {
    if (argument.includes('\0')) throw invalidField(`argv[${index}]`, 'must not contain a zero byte');
    const length = Buffer.byteLength(argument);
    if (length > LONGEST_ARGUMENT) throw invalidField(`argv[${index}]`, `must have at most ${LONGEST_ARGUMENT} bytes`);
    bytes += length + 1;
  }
  if (bytes > MOST_ARGUMENT_BYTES) throw invalidField('argv', `must have at most ${MOST_ARGUMENT_BYTES} bytes in all`);
  if (cwd !== undefined && !isAbsolute(cwd)) throw invalidField('cwd', 'must be an absolute path');
  if (typeof timeoutMs === 'number' && !(timeoutMs >= 1)) throw invalidField('timeoutMs', 'must be at least 1');
  if (typeof outputBytes === 'number' && !(outputBytes >= 0)) throw invalidField('outputBytes', 'must not be negative');
  checkEnvironment(environment);
}

function checkEnvironment(environment: Readonly<Record<string, string>>): void {
  const entries = Object.entries(environment);
  if (entries.length > MOST_VARIABLES)
    throw invalidField('environment', `must have at most ${MOST_VARIABLES} variables`);
  for (const [name, value] of entries) {
    const path = `environment.${VARIABLE.test(name) ? name : '*'}`;
    if (!VARIABLE.test(name)) throw invalidField(path, 'must have names of up to 128 letters, digits and _');
    if (isReservedVariable(name)) throw invalidField(path, 'is set by the sandbox');
    if (value.includes('\0')) throw invalidField(path, 'must not contain a zero byte');
    if (Buffer.byteLength(value) > LONGEST_VALUE) throw invalidField(path, `must have at most ${LONGEST_VALUE} bytes`);
  }
}

function isAbsolute(path: string): boolean {
  return path.startsWith('/') && !path.includes('\0') && Buffer.byteLength(path) <= LONGEST_PATH;
}

const LIMITS = ['memoryBytes', 'processes', 'cpus', 'diskBytes', 'files'] as const satisfies (keyof SandboxLimits)[];

/** @throws GatewayError 400 for a limit above that of the settings */
export function limitsWithin(settings: SandboxesSettings, wanted: Partial<SandboxLimits>): SandboxLimits {
  const limits = {} as SandboxLimits;
  for (const name of LIMITS) {
    const value = wanted[name] ?? settings[name];
    if (!(value > 0 && value <= settings[name])) {
      throw invalidField(`limits.${name}`, `must be above 0 and at most ${settings[name]}, the limit of this gateway`);
    }
    limits[name] = value;
  }
  return limits;
}

/** `gatehouse sealing`: the keys that encrypt stored credentials, and their rotation. */
import { sleep } from '../base/clock.ts';
import {
  defaultFile,
  describeSource,
  previousFile,
  rotateInstallationKey,
  SEALING_TOPIC,
  Sealing,
  sweep,
} from '../sealing/index.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
import { type CommandParts, UsageError } from './command.ts';
import { type OpenedDatabase, withDatabase } from './installation.ts';

export const SEALING_HELP = `gatehouse sealing show
    shows the source of the key that encrypts stored credentials, and checks it
gatehouse sealing rotate-key
    rotates the encryption key. The default file is replaced. A key from GATEHOUSE_KEK, GATEHOUSE_KEK_FILE or
    GATEHOUSE_KEK_COMMAND must be the new one, and GATEHOUSE_KEK_PREVIOUS, ..._FILE or ..._COMMAND the previous one.
    Repeat the command to continue an interrupted rotation
gatehouse sealing rotate-data-keys
    creates new data keys and re-encrypts the stored values with them, also while gateways run
gatehouse sealing sweep
    re-encrypts values that still use older data keys`;

const MOST_SWEEPS = 50;
const BETWEEN_SWEEPS_MS = 100;

export async function sealingCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  if (rest.length > 0) throw new UsageError('too many arguments');
  const actions: Record<string, (parts: CommandParts, opened: OpenedDatabase) => Promise<number>> = {
    show,
    'rotate-key': rotateKey,
    'rotate-data-keys': rotateDataKeys,
    sweep: sweepAll,
  };
  if (action === undefined) throw new UsageError('sealing needs an action');
  if (!Object.hasOwn(actions, action)) throw new UsageError(`unknown: sealing ${action}`);
  return withDatabase(parts, (opened) => actions[action]!(parts, opened));
}

function sealingOf({ config, clock }: CommandParts, { database }: OpenedDatabase): Sealing {
  return new Sealing({ database, clock, settings: config.sealing });
}

async function show(parts: CommandParts, opened: OpenedDatabase): Promise<number> {
  const key = await sealingOf(parts, opened).check();
  parts.out.print(
    key === undefined ? 'nothing is encrypted yet' : `encrypted with ${key.source} (the ${key.role} key)`,
  );
  return 0;
}

async function rotateKey(parts: CommandParts, { database }: OpenedDatabase): Promise<number> {
  const { sealing: settings } = parts.config;
  const source = describeSource(settings.current);
  const rotated = await rotateInstallationKey({ database, settings });
  parts.out.print(
    {
      nothing: 'nothing is encrypted yet: there is no key to rotate',
      already: `everything is already encrypted with ${source}`,
      rotated: `everything is encrypted with the new key, ${source}`,
      'carried on': `the interrupted rotation is complete: everything is encrypted with the new key, ${source}`,
    }[rotated],
  );
  if (rotated === 'nothing') return 0;
  const defaultPath = defaultFile(settings.current);
  const previous =
    settings.previous === null ? defaultPath && previousFile(defaultPath) : describeSource(settings.previous);
  if (previous !== undefined) parts.out.print(`older backups need the previous key: ${previous}`);
  parts.out.print('keep a copy of the new key elsewhere');
  return 0;
}

async function rotateDataKeys(parts: CommandParts, opened: OpenedDatabase): Promise<number> {
  const sealing = sealingOf(parts, opened);
  const made = await changeEverywhere(opened, async (tx, announce) => {
    const made: string[] = [];
    for (const { purpose } of parts.sealedRows) {
      const version = await sealing.addKey(tx, purpose);
      if (version === undefined) continue;
      made.push(`${purpose}: key ${version}`);
      await announce(SEALING_TOPIC, purpose);
    }
    return made;
  });
  for (const line of made) parts.out.print(line);
  return sweepAll(parts, opened);
}

async function sweepAll(parts: CommandParts, opened: OpenedDatabase): Promise<number> {
  const { database } = opened;
  const sealing = sealingOf(parts, opened);
  let [total, swept] = [0, { unreadable: 0, left: 0 }];
  for (let round = 1; round <= MOST_SWEEPS; round++) {
    const { resealed, ...rest } = await sweep({ database, sealing, rows: parts.sealedRows, log: parts.log });
    total += resealed;
    swept = rest;
    // The remaining rows are locked by a gateway that re-encrypts them too.
    if (rest.left <= rest.unreadable) break;
    await sleep(parts.clock, BETWEEN_SWEEPS_MS);
  }
  parts.out.print(`${total} values re-encrypted`);
  if (swept.left === 0) return 0;
  const { left, unreadable } = swept;
  parts.out.print(`${left} values still use older keys; ${unreadable} of them cannot be decrypted`);
  return 1;
}

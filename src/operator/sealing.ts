/** `gatehouse sealing`: the keys that stored credentials are sealed under, and how they give way to others. */
import { sleep } from '../base/clock.ts';
import {
  placeOf,
  previousFile,
  rotateInstallationKey,
  SEALING_TOPIC,
  Sealing,
  sweep,
  usualFile,
} from '../sealing/index.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
import { type CommandParts, UsageError } from './command.ts';
import { type OpenedDatabase, withDatabase } from './installation.ts';

export const SEALING_HELP = `gatehouse sealing show
    where the key is that stored credentials are sealed under, and whether it fits
gatehouse sealing rotate-key
    a new key takes the place of the usual file's. Where GATEHOUSE_KEK, GATEHOUSE_KEK_FILE or GATEHOUSE_KEK_COMMAND gives
    it, GATEHOUSE_KEK_PREVIOUS, ..._FILE or ..._COMMAND has to give the one before; asked again it carries on
gatehouse sealing rotate-data-keys
    new keys for what is stored, which is sealed anew with them, also while gateways run
gatehouse sealing sweep
    seals anew what is still under older keys`;

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
  if (action === undefined) throw new UsageError('say what to do with the keys');
  if (!Object.hasOwn(actions, action)) throw new UsageError(`unknown: sealing ${action}`);
  return withDatabase(parts, (opened) => actions[action]!(parts, opened));
}

function sealingOf({ config, clock }: CommandParts, { database }: OpenedDatabase): Sealing {
  return new Sealing({ database, clock, settings: config.sealing });
}

async function show(parts: CommandParts, opened: OpenedDatabase): Promise<number> {
  const key = await sealingOf(parts, opened).check();
  parts.out.print(key === undefined ? 'nothing was ever sealed' : `sealed under ${key.place} (the ${key.role} key)`);
  return 0;
}

async function rotateKey(parts: CommandParts, { database }: OpenedDatabase): Promise<number> {
  const { sealing: settings } = parts.config;
  const place = placeOf(settings.current);
  const rotated = await rotateInstallationKey({ database, settings });
  parts.out.print(
    {
      nothing: 'nothing was ever sealed: there is no key to change',
      already: `everything is sealed under ${place} already`,
      rotated: `everything is sealed under the new key, ${place}`,
      'carried on': `the change that was broken off is done: everything is sealed under the new key, ${place}`,
    }[rotated],
  );
  if (rotated === 'nothing') return 0;
  const usual = usualFile(settings.current);
  const previous = settings.previous === null ? usual && previousFile(usual) : placeOf(settings.previous);
  if (previous !== undefined) parts.out.print(`backups made before need the one before it: ${previous}`);
  parts.out.print('keep a copy of the new key in another place');
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
    // The others are held by a gateway that does the same.
    if (rest.left <= rest.unreadable) break;
    await sleep(parts.clock, BETWEEN_SWEEPS_MS);
  }
  parts.out.print(`${total} values sealed anew`);
  if (swept.left === 0) return 0;
  const { left, unreadable } = swept;
  parts.out.print(`${left} are under older keys still; ${unreadable} of them cannot be opened`);
  return 1;
}

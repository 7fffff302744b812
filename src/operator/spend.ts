/** `gatehouse spend`: the parts of budgets that processes hold, and their release after a process was lost. */
import { organizationId } from '../access/index.ts';
import { usdFromNano } from '../base/money.ts';
import { type Hold, listProcesses, releaseProcess, type SpendProcess, unreturnedProcesses } from '../spend/index.ts';
import { type CommandParts, parseArguments, UsageError } from './command.ts';
import { type OpenedDatabase, withDatabase } from './installation.ts';

export const SPEND_HELP = `gatehouse spend processes [--json]
    lists every process that holds a part of a budget: live, gone (its journal is not entered), or replayed (its journal
    is entered; it holds the reservations of requests that were open when it died)
gatehouse spend release PROCESS... | --all [--force]
    returns what lost processes hold to their budgets. --all: of every process that is replayed, or is gone for
    limits.unreturned_after and has no journal on this machine. --force: also of a process seen within the last 90 s.
    If such a process comes back with its journal, a limit may be exceeded by the released amount`;

export async function spendCommand(args: readonly string[], parts: CommandParts): Promise<number> {
  const [action, ...rest] = args;
  switch (action) {
    case 'processes': {
      const { values } = parseArguments(rest, { json: { type: 'boolean' } });
      return withDatabase(parts, (opened) => show(parts, opened, values['json'] === true));
    }
    case 'release': {
      const { values, positionals } = parseArguments(
        rest,
        { all: { type: 'boolean' }, force: { type: 'boolean' } },
        true,
      );
      const all = values['all'] === true;
      if (all === positionals.length > 0) throw new UsageError('name the processes, or use --all');
      return withDatabase(parts, (opened) =>
        release(parts, opened, all ? undefined : positionals, values['force'] === true),
      );
    }
    default:
      throw new UsageError(action === undefined ? 'spend needs an action' : `unknown: spend ${action}`);
  }
}

async function show(parts: CommandParts, { database }: OpenedDatabase, json: boolean): Promise<number> {
  const { clock, out } = parts;
  const processes = await listProcesses(database, clock.now());
  if (json) {
    out.print(JSON.stringify({ processes: processes.map(reply) }, null, 2));
    return 0;
  }
  if (processes.length === 0) out.print('no process holds anything');
  for (const process of processes) {
    out.print(`${process.id}  ${process.state}  ${describe(process, clock.now())}`);
    for (const hold of process.holds) out.print(`    ${describeHold(hold)}`);
  }
  return 0;
}

function reply({ id, state, host, journalDir, seenAt, openRequests, journalHere, holds }: SpendProcess) {
  return {
    id,
    state,
    host,
    place: journalDir,
    seen_at: seenAt === null ? null : new Date(seenAt).toISOString(),
    open_requests: openRequests,
    journal_here: journalHere,
    holds: holds.map(({ scope, scopeId, interval, nano }) => ({
      scope,
      id: scopeId,
      reset_interval: interval,
      held_usd: usdFromNano(nano),
    })),
  };
}

function describe({ host, seenAt, openRequests, journalHere }: SpendProcess, nowMs: number): string {
  const facts = [
    ...(host === null ? [] : [`on ${host}`]),
    seenAt === null ? 'never seen' : `last seen ${Math.max(0, Math.round((nowMs - seenAt) / 1000))} s ago`,
    ...(openRequests === null ? [] : [`${openRequests} open requests`]),
    ...(journalHere ? ['its journal is here: the next start on this data directory enters it'] : []),
  ];
  return facts.join(', ');
}

function describeHold({ scope, scopeId, interval, nano }: Hold): string {
  return `${usdFromNano(nano)} USD of the ${interval} budget of ${scope} ${scopeId}`;
}

async function release(
  parts: CommandParts,
  { database, changes }: OpenedDatabase,
  named: readonly string[] | undefined,
  force: boolean,
): Promise<number> {
  const { clock, config, out } = parts;
  const account = await organizationId(database);
  if (account === undefined) throw new Error('no organization exists yet; start the gateway once');
  const ids = named ?? (await lost(database, clock.now(), config.limits.unreturnedAfterMs));
  if (ids.length === 0) out.print('no process needs to be released');
  for (const id of ids) {
    const holds = await releaseProcess({ database, changes, clock, organizationId: account }, id, { force });
    out.print(`released ${id}`);
    for (const hold of holds) out.print(`    ${describeHold(hold)}`);
  }
  return 0;
}

async function lost(database: OpenedDatabase['database'], nowMs: number, silentMs: number): Promise<string[]> {
  const processes = await unreturnedProcesses(database, nowMs, silentMs);
  return processes.filter(({ journalHere }) => !journalHere).map(({ id }) => id);
}

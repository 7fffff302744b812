/** Runs the cases, a few at a time, and collects what they find. */
import { Absent, type Case, Lost, Refused, type Verdict } from './cases/case.ts';
import { CONVERSATION_CASES } from './cases/conversation.ts';
import { CLIENT_CASES, ERROR_CASES } from './cases/errors.ts';
import { STREAM_CASES } from './cases/streams.ts';
import { FORMAT_NAMES, type FormatName } from './formats/dialogue.ts';
import type { Place, Session } from './session.ts';

export interface Cell {
  client: FormatName;
  /** Of a case of the scope `client`: undefined. */
  upstream?: FormatName;
  /** `outside`: the formats cannot express it; `unserved`: the gateway does not serve this pair of formats at all. */
  verdict: Verdict | 'outside' | 'unserved';
  /** What was lost, with the mode in which it was; of `unserved`, what a plain request got. */
  detail?: string;
}

export interface Row {
  group: string;
  feature: string;
  cells: Cell[];
}

const GROUPS: readonly (readonly [string, readonly Case[]])[] = [
  ['Translation', CONVERSATION_CASES],
  ['Streams', STREAM_CASES],
  ['Errors of upstreams', ERROR_CASES],
  ['Requests and failover', CLIENT_CASES],
];
const AT_ONCE = 4;

interface RunOptions {
  /** Only features whose names contain this text. */
  only?: string;
  /** Called for every finished cell. */
  progress?(done: number, all: number): void;
}

export async function runCases(session: Session, { only = '', progress }: RunOptions): Promise<Row[]> {
  const unserved = await findUnserved(session);
  const tasks: (() => Promise<void>)[] = [];
  const rows = GROUPS.flatMap(([group, cases]) =>
    cases
      .filter(({ feature }) => feature.includes(only))
      .map((each): Row => {
        const places = placesOf(each);
        const cells = places.map(({ client, upstream }): Cell => {
          const place = each.scope === 'pair' ? { client, upstream } : { client };
          const detail = unserved.get(pairName(client, upstream));
          return detail === undefined ? { ...place, verdict: 'outside' } : { ...place, verdict: 'unserved', detail };
        });
        for (const [at, { client, upstream }] of places.entries()) {
          if (cells[at]!.verdict === 'unserved') continue;
          tasks.push(async () => void Object.assign(cells[at]!, await judge(session, each, client, upstream)));
        }
        return { group, feature: each.feature, cells };
      }),
  );
  const all = tasks.length;
  let done = 0;
  const work = async () => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) {
      await task();
      done += 1;
      progress?.(done, all);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return rows;
}

/** The pairs of formats in which not even a plain text comes through, with what came instead. */
async function findUnserved(session: Session): Promise<Map<string, string>> {
  const probe = CONVERSATION_CASES.find(({ feature }) => feature === 'text')!;
  const found = new Map<string, string>();
  for (const { client, upstream } of placesOf(probe)) {
    const { verdict, detail = '' } = await attempt(session, probe, { client, upstream, streamed: false });
    if (verdict !== 'kept') found.set(pairName(client, upstream), detail);
  }
  return found;
}

function pairName(client: FormatName, upstream: FormatName): string {
  return `${client} on ${upstream}`;
}

/** Cases of the scope `client` need one upstream: of the same format, or of that of the upstreams for failover. */
function placesOf({ scope, fallsBack }: Case): { client: FormatName; upstream: FormatName }[] {
  return FORMAT_NAMES.flatMap((client) => {
    if (scope === 'client') return [{ client, upstream: fallsBack ? ('chat' as const) : client }];
    return FORMAT_NAMES.map((upstream) => ({ client, upstream }));
  });
}

/** The worst verdict of the modes. */
async function judge(
  session: Session,
  each: Case,
  client: FormatName,
  upstream: FormatName,
): Promise<Pick<Cell, 'verdict' | 'detail'>> {
  let found: Pick<Cell, 'verdict' | 'detail'> | undefined;
  for (const mode of each.modes) {
    const place: Place = { client, upstream, streamed: mode === 'stream' };
    if (each.isOutside?.(place)) continue;
    const one = await attempt(session, each, place);
    if (found === undefined || SEVERITY.indexOf(one.verdict) > SEVERITY.indexOf(found.verdict)) {
      const detail = one.detail && each.modes.length > 1 ? `${mode}: ${one.detail}` : one.detail;
      found = { verdict: one.verdict, ...(detail && { detail }) };
    }
  }
  return found ?? { verdict: 'outside' };
}

const SEVERITY = ['outside', 'kept', 'absent', 'refused', 'lost'];

async function attempt(session: Session, each: Case, place: Place): Promise<Pick<Cell, 'verdict' | 'detail'>> {
  try {
    await each.run(session, place);
    return { verdict: 'kept' };
  } catch (error) {
    if (error instanceof Lost) return { verdict: 'lost', detail: error.message };
    if (error instanceof Refused) return { verdict: 'refused', detail: error.message };
    if (error instanceof Absent) return { verdict: 'absent', detail: error.message };
    throw error;
  }
}

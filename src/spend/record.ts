/**
 * The records of a journal, one per line (`record-buffer.ts` writes them). A line torn by a crash fails its checksum.
 * The row of a settled record is the text of `row.ts`.
 */
import { crc32 } from 'node:zlib';
import type { Nano, Price } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Charge } from './budget.ts';
import { type Accepted, acceptedFrom } from './generation.ts';

/** I: intent, A: further attempt, P: progress of an open answer, S: settled. */
export type RecordKind = 'I' | 'A' | 'P' | 'S';

/** Amount that a settled generation takes from the lease of one window; `forcedNano` is what the lease did not cover. */
export interface Taken {
  windowId: string;
  nano: bigint;
  forcedNano: bigint;
}

/** A row on its way into the database. */
export interface Entry {
  id: string;
  /** JSON object whose keys are columns. */
  row: string;
  taken: Taken[];
}

/** One dispatch to one endpoint, with the facts to price it if this process dies. */
export interface Attempt {
  model: string;
  endpointId: string | null;
  providerName: string | null;
  isByok: boolean;
  /** Estimated tokens of the prompt and their cost at this endpoint. */
  promptTokens: number;
  promptNano: Nano;
  /** Price of one output token, 10^-18 USD. */
  outputPrice: Price;
  /** Cost, or possible cost, of earlier attempts of this request. */
  earlier: Charge;
  /** Usage of its earlier turns, whose cost is in `earlier`. */
  earlierUsage?: Usage | undefined;
}

/** The attempt of a request that tried no endpoint: it costs what is paid already. */
export function unservedAttempt(model: string, earlier: Charge): Attempt {
  const unserved = { model, endpointId: null, providerName: null, isByok: false };
  return { ...unserved, promptTokens: 0, promptNano: 0n, outputPrice: 0n, earlier };
}

export interface Intent {
  accepted: Accepted;
  attempt: Attempt;
  /** Held at `begin`, by budget window. */
  held: { windowId: string; nano: bigint; includeByok: boolean }[];
}

export interface Progress {
  outputBytes: number;
  usage: Usage | null;
  /** Cost of `usage`. */
  charge: Charge | null;
}

/** Kind and JSON of one line without its line feed; undefined unless it is an intact record. */
export function unframe(line: string): { kind: RecordKind; json: string } | undefined {
  const kind = line[0];
  if (kind !== 'I' && kind !== 'A' && kind !== 'P' && kind !== 'S') return undefined;
  if (line[9] !== ' ') return undefined;
  const json = line.slice(10);
  if (line.slice(1, 9) !== crc32(json).toString(16).padStart(8, '0')) return undefined;
  return { kind, json };
}

export function encodeIntent(intent: Intent): string {
  return JSON.stringify([
    intent.accepted,
    attemptFields(intent.attempt),
    intent.held.map((held) => [held.windowId, String(held.nano), held.includeByok]),
  ]);
}

type HeldFields = [windowId: string, nano: string, includeByok: boolean];

export function decodeIntent(json: string): Intent {
  const [accepted, attempt, held] = JSON.parse(json) as [Partial<Accepted>, AttemptFields, HeldFields[]];
  return {
    accepted: acceptedFrom(accepted),
    attempt: attemptOf(attempt),
    held: held.map(([windowId, nano, includeByok]) => ({ windowId, nano: BigInt(nano), includeByok })),
  };
}

/** @param held total that the request holds with this attempt; absent in journals of earlier versions */
export function encodeAttempt(id: string, attempt: Attempt, held?: Charge): string {
  return JSON.stringify([id, attemptFields(attempt), held && chargeFields(held)]);
}

export function decodeAttempt(json: string): { id: string; attempt: Attempt; held?: Charge } {
  const [id, fields, held] = JSON.parse(json) as [string, AttemptFields, (ChargeFields | null)?];
  return { id, attempt: attemptOf(fields), ...(held && { held: chargeOf(held) }) };
}

export function encodeProgress(id: string, progress: Progress): string {
  const { charge } = progress;
  return JSON.stringify([
    id,
    progress.outputBytes,
    progress.usage === null ? null : withoutNative(progress.usage),
    charge === null ? null : chargeFields(charge),
  ]);
}

export function decodeProgress(json: string): { id: string; progress: Progress } {
  const [id, outputBytes, usage, charge] = JSON.parse(json) as [string, number, Usage | null, ChargeFields | null];
  return {
    id,
    progress: {
      outputBytes,
      usage,
      charge: charge === null ? null : chargeOf(charge),
    },
  };
}

type ChargeFields = [creditNano: string, byokNano: string];

function chargeFields({ creditNano, byokNano }: Charge): ChargeFields {
  return [String(creditNano), String(byokNano)];
}

function chargeOf([creditNano, byokNano]: ChargeFields): Charge {
  return { creditNano: BigInt(creditNano), byokNano: BigInt(byokNano) };
}

/** The id comes first, so that readers can match records without parsing rows. */
export function encodeSettled(entry: Entry): string {
  return settledHead(entry) + entry.row;
}

/** The part before the row. */
export function settledHead({ id, taken }: Pick<Entry, 'id' | 'taken'>): string {
  const fields: unknown[] = [id];
  for (const { windowId, nano, forcedNano } of taken) fields.push([windowId, String(nano), String(forcedNano)]);
  // JSON escapes every control character, so a tab can only be this separator.
  return `${JSON.stringify(fields)}\t`;
}

export function decodeSettled(json: string): Entry {
  const tab = json.indexOf('\t');
  const [id, ...taken] = JSON.parse(json.slice(0, tab)) as [string, ...[string, string, string][]];
  return {
    id,
    row: json.slice(tab + 1),
    taken: taken.map(([windowId, nano, forced]) => ({ windowId, nano: BigInt(nano), forcedNano: BigInt(forced) })),
  };
}

type AttemptFields = [
  model: string,
  endpointId: string | null,
  providerName: string | null,
  isByok: boolean,
  promptTokens: number,
  promptNano: string,
  outputPrice: string,
  earlierNano: string,
  earlierByokNano: string,
  earlierUsage?: Usage,
];

function attemptFields(attempt: Attempt): AttemptFields {
  return [
    attempt.model,
    attempt.endpointId,
    attempt.providerName,
    attempt.isByok,
    attempt.promptTokens,
    String(attempt.promptNano),
    String(attempt.outputPrice),
    String(attempt.earlier.creditNano),
    String(attempt.earlier.byokNano),
    ...(attempt.earlierUsage === undefined ? ([] as const) : ([withoutNative(attempt.earlierUsage)] as const)),
  ];
}

function attemptOf(fields: AttemptFields): Attempt {
  return {
    model: fields[0],
    endpointId: fields[1],
    providerName: fields[2],
    isByok: fields[3],
    promptTokens: fields[4],
    promptNano: BigInt(fields[5]),
    outputPrice: BigInt(fields[6]),
    // Journals of earlier versions have no ninth field.
    earlier: { creditNano: BigInt(fields[7]), byokNano: BigInt(fields[8] ?? '0') },
    ...(fields[9] !== undefined && { earlierUsage: fields[9] }),
  };
}

/** The members that rows have columns for. */
function withoutNative(usage: Usage): Usage {
  return { ...usage, native: undefined };
}

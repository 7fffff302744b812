/** Kinds of columns of `generations`: how a value is stored, read back and shown by GET /generation. */
import type { TSchema } from 'typebox';
import { usdFromNano } from '../base/money.ts';
import { isoTime } from '../base/timestamp.ts';

export type SqlType = 'text' | 'boolean' | 'integer' | 'bigint' | 'double precision' | 'timestamptz' | 'jsonb';

/** How values of type `T` are stored as JSON of type `J`; undefined is omitted and stored as null. */
interface Kind<T, J> {
  readonly sql: SqlType;
  encode(value: T): J;
  /** From the JSON of a journal, or as PostgreSQL returns it. Never called with null. */
  decode(stored: unknown): T;
  /** For a stored null, and for a row without an answer. */
  readonly empty: T;
  /** The value on the wire; by default the value itself. */
  toWire?(value: T): unknown;
}

/** Members of the wire format and their schemas. */
type Wire = Readonly<Record<string, TSchema>>;

/** One member of a row, stored in one or several columns: `C` is the JSON by column. */
export interface Member<T, C> {
  readonly columns: { readonly [N in keyof C]: SqlType };
  encode(value: T): C;
  decode(stored: Stored<C>): T;
  readonly empty: T;
  /** The members of GET /generation that show the value. */
  readonly wire: Wire;
  toWire(value: T): unknown;
}

/** A row as JSON of a journal, which may be of an earlier version, or as PostgreSQL returns it. */
export type Stored<C> = { readonly [N in keyof C]?: unknown };

/** A member that is stored in one column. */
export function column<N extends string, T, J>(name: N, kind: Kind<T, J>, wire: Wire = {}): Member<T, Record<N, J>> {
  return {
    columns: { [name]: kind.sql } as Record<N, SqlType>,
    encode: (value) => ({ [name]: kind.encode(value) }) as Record<N, J>,
    decode: ({ [name]: stored }: Stored<Record<N, J>>) =>
      stored === null || stored === undefined ? kind.empty : kind.decode(stored),
    empty: kind.empty,
    wire,
    toWire: (value) => (kind.toWire ? kind.toWire(value) : value),
  };
}

function plain<T>(sql: SqlType, empty: T): Kind<T, T> {
  return { sql, encode: (value) => value, decode: (stored) => stored as T, empty };
}

function optional<T>(sql: SqlType): Kind<T | null, T | undefined> {
  return { sql, encode: (value) => value ?? undefined, decode: (stored) => stored as T, empty: null };
}

export const text = <T extends string = string>() => plain<T>('text', '' as T);
export const flag = plain<boolean>('boolean', false);
export const json = <T extends object>(empty: T) => plain<T>('jsonb', Object.freeze(empty));
export const optionalText = optional<string>('text');
export const optionalInteger = optional<number>('integer');
export const optionalJson = <T extends object>() => optional<T>('jsonb');
/** Milliseconds. */
export const duration = optional<number>('double precision');

/** A list that is absent instead of empty. */
export function optionalList<T>(): Kind<readonly T[] | undefined, readonly T[] | undefined> {
  return {
    sql: 'jsonb',
    encode: (list) => list,
    decode: (stored) => stored as T[],
    empty: undefined,
    toWire: (list) => list ?? [],
  };
}

/** The same for entries that are stored as arrays and shown as objects. */
export function tuples<T>(entryToWire: (entry: T) => object): Kind<readonly T[] | undefined, readonly T[] | undefined> {
  return { ...optionalList<T>(), toWire: (list) => (list ?? []).map(entryToWire) };
}

/** Milliseconds since 1970 UTC. */
export const time: Kind<number, string> = {
  sql: 'timestamptz',
  encode: isoTime,
  decode: (stored) => new Date(stored as string | Date).getTime(),
  empty: 0,
  toWire: isoTime,
};

const MAX_MONEY = 2n ** 53n;

/** As text, because nano-dollars exceed the exact integers of JSON. */
export function encodeMoney(nano: bigint): string {
  if (nano > MAX_MONEY) return String(MAX_MONEY);
  return nano < -MAX_MONEY ? String(-MAX_MONEY) : String(nano);
}

export const money: Kind<bigint, string> = {
  sql: 'bigint',
  encode: encodeMoney,
  decode: (stored) => BigInt(stored as string | number | bigint),
  empty: 0n,
  toWire: usdFromNano,
};

export const optionalMoney: Kind<bigint | null, string | undefined> = {
  sql: 'bigint',
  encode: (nano) => (nano === null ? undefined : encodeMoney(nano)),
  decode: money.decode,
  empty: null,
  toWire: (nano) => (nano === null ? null : usdFromNano(nano)),
};

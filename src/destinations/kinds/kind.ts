/** What a type of destination is: the members of its config, and the requests that deliver records to it. */
import type { Outgoing } from '../../egress/index.ts';
import type { GenerationRecord } from '../record.ts';

/** Valid: every member is present unless it is optional and has no default. Secrets are in clear text. */
type Config = Readonly<Record<string, string>>;

export interface FullConfig {
  readonly members: Config;
  /** Headers that the customer adds to every request. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Field {
  /** `url`: of an address that requests are sent to. */
  readonly is: 'text' | 'secret' | 'url' | 'choice';
  readonly default?: string;
  readonly optional?: boolean;
  /** The accepted values of a `choice`. */
  readonly choices?: readonly string[];
  /** A text that is part of the host name that requests are sent to. */
  readonly namesHost?: boolean;
  /** What a text must match, and the same in words. */
  readonly pattern?: { readonly matches: RegExp; readonly says: string };
}

export interface Scene {
  /** Wall time in ms. */
  readonly now: number;
  /** The version of the gateway. */
  readonly version: string;
}

export interface DestinationKind {
  readonly type: string;
  readonly fields: Readonly<Record<string, Field>>;
  /** Records wait in the database until they are delivered, at most a day; otherwise in the memory of their process. */
  readonly durable: boolean;
  /** The most UTF-16 units of records in one batch. */
  readonly batchUnits: number;
  /** A request that succeeds if, and only if, the destination accepts this config. It delivers no generation. */
  probe(config: FullConfig, scene: Scene): Outgoing | Promise<Outgoing>;
  /** Requests that deliver the records. Repeating them after a failure must do no harm. */
  requests(
    config: FullConfig,
    records: readonly GenerationRecord[],
    scene: Scene,
  ): readonly Outgoing[] | Promise<readonly Outgoing[]>;
}

export const text = (more: Omit<Field, 'is'> = {}): Field => ({ is: 'text', ...more });
/** A text that becomes the value of a header. */
export const headerText = (more: Omit<Field, 'is'> = {}): Field =>
  text({ ...more, pattern: { matches: /^[\x20-\x7e]+$/, says: 'must consist of ASCII characters' } });
export const secret = (more: Omit<Field, 'is'> = {}): Field => ({ is: 'secret', ...more });
/** The user name of Basic authentication, which ends at the first colon. */
export const userText = (): Field =>
  text({ pattern: { matches: /^[\x20-\x39\x3b-\x7e]+$/, says: 'must consist of ASCII characters, without a colon' } });
export const url = (more: Omit<Field, 'is'> = {}): Field => ({ is: 'url', ...more });
/** A URL that requests append a path to. */
export const baseUrl = (more: Omit<Field, 'is'> = {}): Field =>
  url({ ...more, pattern: { matches: /^[^?#]*$/, says: 'must not have a query or a fragment' } });
export const choice = (choices: readonly string[], usual: string): Field => ({ is: 'choice', choices, default: usual });

export const JSON_BODY = { 'content-type': 'application/json' };
/** Below the 1 MB that New Relic and PostHog accept, with room for what records are wrapped in. */
export const USUAL_BATCH_UNITS = 512 * 1024;

export function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/** A URL with a path appended to that of a base URL. */
export function under(base: string, path: string): string {
  return base.replace(/\/+$/, '') + path;
}

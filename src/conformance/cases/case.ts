/** What a case is, and what it finds. */

import type { Asked, Heard } from '../formats/dialogue.ts';
import type { Exchange, Place, Session } from '../session.ts';

export type Verdict = 'kept' | 'lost' | 'refused' | 'absent';

/** Something was lost; the message says what. */
export class Lost extends Error {}
/** The gateway refuses the request with an error, which the client sees. */
export class Refused extends Error {}
/** The gateway does not have this at all, and does not claim to. */
export class Absent extends Error {}

export interface Case {
  /** A row of the report. */
  feature: string;
  /** `pair`: for each format of clients with each format of upstreams; `client`: for each format of clients. */
  scope: 'pair' | 'client';
  /** It uses the model with two upstreams. */
  fallsBack?: boolean;
  /** The formats cannot express it. */
  isOutside?(place: Place): boolean;
  modes: readonly ('whole' | 'stream')[];
  /** Throws Lost, Refused or Absent. */
  run(session: Session, place: Place): Promise<void>;
}

export const BOTH = ['whole', 'stream'] as const;

/** A request with one text. */
export function simple(tag: string, more: Partial<Asked> = {}): Asked {
  return { turns: [{ role: 'user', text: `${tag} Say hello.` }], ...more };
}

/** In place of a status when the gateway cannot be reached. */
export const NO_RESPONSE = 'no response';

/** What the client read of an answer that ended well. */
export function heardOf({ reply, heard, broken }: Exchange): Heard {
  if (reply.status >= 400 && reply.status < 500) throw new Refused(`${reply.status} ${excerpt(reply.text)}`);
  if (reply.status !== 200) throw new Lost(`${reply.status || NO_RESPONSE} ${excerpt(reply.text)}`.trim());
  if (reply.end === 'silent') throw new Lost('the response is not complete after 30 s');
  if (reply.end !== 'complete') throw new Lost(`the response is ${reply.end}`);
  if (broken !== undefined || heard === undefined) throw new Lost(broken ?? 'no answer');
  if (heard.error !== undefined) throw new Lost(`error: ${excerpt(heard.error)}`);
  if (heard.stop === undefined) throw new Lost(`the answer has no known end: ${JSON.stringify(heard.stopText)}`);
  return heard;
}

export function expect(what: string, got: unknown, wanted: unknown): void {
  const [is, shouldBe] = [JSON.stringify(got) ?? 'missing', JSON.stringify(wanted)];
  if (is !== shouldBe) throw new Lost(`${what} ${excerpt(is)} instead of ${excerpt(shouldBe)}`);
}

const LONGEST_EXCERPT = 100;

export function excerpt(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > LONGEST_EXCERPT ? `${line.slice(0, LONGEST_EXCERPT)}...` : line;
}

/** Listeners that receive a client's answer in addition to the client: the response cache and the content log. */
import type { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import type { Generation } from '../../spend/index.ts';
import type { Transcript } from './transcript.ts';

/** How the answer ended, for listeners. */
export interface Ended {
  row: Generation;
  /** The content of the answer, if it is logged. */
  transcript: Transcript | undefined;
  error: GatewayError | null;
}

export interface AnswerListener {
  /** A piece of the answer as the client gets it. Excludes keep-alive comments, and errors before the stream's head. */
  wrote?(piece: WholeBody): void;
  /** Called at most once, when everything is written and the row is settled. */
  ended(ended: Ended): void;
}

/** A listener that throws must not affect the request. */
export function notifyEnded(listeners: readonly AnswerListener[], ended: Ended, log: Log): void {
  for (const listener of listeners) {
    try {
      listener.ended(ended);
    } catch (cause) {
      log.error('an answer listener failed', { generation: ended.row.id, cause });
    }
  }
}

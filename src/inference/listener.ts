/** Who hears what a client is answered, besides the client: the response cache, the log of contents. */
import type { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { WholeBody } from '../formats/single/index.ts';
import type { Generation } from '../spend/index.ts';
import type { Transcript } from './transcript.ts';

/** What listeners are told of the end. */
export interface Ended {
  row: Generation;
  /** What the answer said, where that is kept. */
  said: Transcript | undefined;
  error: GatewayError | null;
}

export interface AnswerListener {
  /** A piece of the answer as the client gets it; comments of a stream and errors before its head are not told. */
  wrote?(piece: WholeBody): void;
  /** Called at most once, when everything was written and the row is entered, which tells how it ended. */
  ended(ended: Ended): void;
}

/** No fault of a listener is the request's. */
export function tellEnded(listeners: readonly AnswerListener[], ended: Ended, log: Log): void {
  for (const listener of listeners) {
    try {
      listener.ended(ended);
    } catch (cause) {
      log.error('a listener of answers failed', { generation: ended.row.id, cause });
    }
  }
}

/** Answers the requests of other processes about interns that this process holds. */
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { PeerResponse } from '../../peers/index.ts';
import type { Database } from '../../storage/database.ts';
import type { Chats } from '../chat/chats.ts';
import type { ChatSink } from '../chat/chunks.ts';
import { internError } from '../errors.ts';
import { runningIntern } from '../intern.ts';
import { internWithId } from '../store.ts';
import { HeldElsewhere, type Holders } from '../work/holders.ts';
import { type Answer, type Question, refusal } from './question.ts';

interface AnswerParts {
  database: Pick<Database, 'query' | 'transaction'>;
  log: Log;
  chats: Chats;
  holders: Pick<Holders, 'holds'>;
}

/** Never rejects. */
export async function answerPeer(parts: AnswerParts, question: Question, response: PeerResponse): Promise<void> {
  const reply = (answer: Answer) => response.reply(answer);
  const { database, chats, holders } = parts;
  try {
    if (!holders.holds(question.internId)) throw new HeldElsewhere();
    const intern = runningIntern(await internWithId(database, question.internId));
    if (question.kind === 'chat') {
      await chats.respond(intern, question.request, question.caller, sinkOf(response));
    } else {
      const body = await chats.invoke(intern, question.sessionId, question.text, question.caller);
      reply({ kind: 'reply', status: 202, body });
    }
  } catch (error) {
    if (error instanceof HeldElsewhere) reply({ kind: 'elsewhere' });
    else reply({ kind: 'refused', error: refusal(shown(parts, error)) });
  }
}

function shown({ log }: AnswerParts, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  log.error('a request of another process failed', { error });
  return internError('internal_error', 'Internal error; see the log of the gateway.');
}

function sinkOf(response: PeerResponse): ChatSink {
  return {
    get closed() {
      return response.closed;
    },
    reply: (status, body) => response.reply({ kind: 'reply', status, body } satisfies Answer),
    open: () => response.open(),
    write: (text) => response.write(text),
    end: () => response.end(),
    onDrain: (run) => response.onDrain(run),
    onClose: (run) => response.onClose(run),
  };
}

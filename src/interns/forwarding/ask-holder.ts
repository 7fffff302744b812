/**
 * Forwards a request about an intern to the process that holds it, and returns the response as if the intern ran here.
 */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Namespace } from '../../base/namespace.ts';
import { callPeer, type PeerAnswer, type PeerStream, PeerUnreachable } from '../../peers/index.ts';
import { type Sealing, SealingError } from '../../sealing/index.ts';
import { type ChatSink, KEEP_ALIVE_MS } from '../chat/chunks.ts';
import type { ChatRequest } from '../chat/request.ts';
import { REQUEST_MS } from '../chat/response.ts';
import type { InvokedReply } from '../chat/schema.ts';
import { internError } from '../errors.ts';
import { HeldElsewhere, type Holder } from '../work/holders.ts';
import { addressOf } from './endpoint.ts';
import { type Answer, errorOf, type Question } from './question.ts';
import { RelayedResponse, severed } from './relayed-response.ts';

interface AskParts {
  clock: Clock;
  log: Log;
  namespace: Namespace;
  sealing: Pick<Sealing, 'sealer' | 'opener'>;
}

/** The holder has its own deadline, which is the one that callers see. */
const HEAD_MS = REQUEST_MS + 10_000;
/** A live holder writes a comment when it has nothing else to write. */
const SILENT_MS = 2.5 * KEEP_ALIVE_MS;

type Session = { sessionId: string };

/** @throws GatewayError, HeldElsewhere */
export async function forwardChat(
  parts: AskParts,
  holder: Holder,
  { internId, caller, request }: { internId: string; caller: string; request: ChatRequest & Session },
  sink: ChatSink,
): Promise<void> {
  const left = new AbortController();
  sink.onClose(() => left.abort());
  const answer = await ask(parts, holder, { kind: 'chat', internId, caller, request }, left.signal);
  if (isStream(answer)) await new RelayedResponse(parts, sink, request.sessionId).relay(answer.stream);
  else sink.reply(answer.status, answer.body);
}

/** @throws GatewayError, HeldElsewhere */
export async function forwardInvoke(
  parts: AskParts,
  holder: Holder,
  question: Omit<Extract<Question, { kind: 'invoke' }>, 'kind'>,
): Promise<InvokedReply> {
  const answer = await ask(parts, holder, { kind: 'invoke', ...question }, new AbortController().signal);
  if (isStream(answer)) throw severed();
  return answer.body as InvokedReply;
}

type Replied = Extract<Answer, { kind: 'reply' }>;

function isStream(answer: { stream: PeerStream } | Replied): answer is { stream: PeerStream } {
  return 'stream' in answer;
}

async function ask(
  { clock, log, sealing }: AskParts,
  holder: Holder,
  body: Question,
  signal: AbortSignal,
): Promise<{ stream: PeerStream } | Replied> {
  let given: PeerAnswer;
  try {
    const address = await addressOf(sealing, holder);
    given = await callPeer(address, { body, clock, withinMs: HEAD_MS, silentMs: SILENT_MS, signal });
  } catch (error) {
    if (signal.aborted) throw internError('client_closed_request', 'The client closed the connection.');
    if (!(error instanceof PeerUnreachable || error instanceof SealingError)) throw error;
    log.warn('the process that holds an intern does not answer', { intern: body.internId, holder: holder.id, error });
    if (error instanceof PeerUnreachable && error.asked) throw severed();
    throw internError('intern_unreachable', 'The process that runs the intern cannot be reached.', { cause: error });
  }
  if ('stream' in given) return given;
  const answer = given.reply as Answer;
  if (answer.kind === 'elsewhere') throw new HeldElsewhere();
  if (answer.kind === 'refused') throw errorOf(answer.error);
  return answer;
}

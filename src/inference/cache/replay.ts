/**
 * Serves a cached answer to a new request. The answer gets a new id and a row that costs nothing, is streamed if the
 * client asked for a stream, and is sent as fast as the client reads.
 */
import type { GatewayError } from '../../base/errors.ts';
import type { CachedAnswer } from '../../cache/index.ts';
import { type Renewal, renewedEvents } from '../../formats/conversation/renewal.ts';
import type { OpenGeneration } from '../../spend/index.ts';
import { acceptedOf, cachedRowOf } from '../accounting/record.ts';
import { settleTokens } from '../admission/rate-limits.ts';
import { answerError, faultOf, shuttingDown } from '../answer/error-response.ts';
import { type Ended, notifyEnded } from '../answer/listener.ts';
import { headersOf } from '../answer/response-headers.ts';
import { transcriptOf } from '../answer/transcript.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import { type AcceptedRequest, isConversationFormat } from '../request.ts';
import type { Interruptible } from '../requests-in-flight.ts';
import type { Task } from '../task.ts';

/** Text renewed and written at once, at least; a piece always ends at the end of an event. */
const PIECE_LENGTH = 32 * 1024;
const NOTHING = { creditNano: 0n, byokNano: 0n };

export class Replay implements Interruptible {
  readonly #context: RequestContext;
  readonly #request: AcceptedRequest;
  readonly #task: Task;
  readonly #answer: CachedAnswer;
  readonly #parts: InferenceParts;
  readonly #renewal: Renewal;
  readonly #startedAt: number;
  #generation: OpenGeneration | undefined;
  #ended: Omit<Ended, 'transcript'> | undefined;
  /** The cached stream, and the offset of what has not been written yet. */
  #text = '';
  #at = 0;
  #over = false;
  /** Resolves with the reason why the client did not receive the end, which is a bug of the gateway. */
  readonly #finished = Promise.withResolvers<unknown>();

  constructor(context: RequestContext, task: Task, answer: CachedAnswer, parts: InferenceParts) {
    this.#context = context;
    const { request } = context;
    this.#request = request;
    this.#task = task;
    this.#answer = answer;
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
    const created = Math.floor(request.startedAt / 1000);
    this.#renewal = { id: request.id, created, metadataKey: parts.metadataKey };
  }

  /**
   * Resolves once the client has its answer or has disconnected, and the row is settled. Rejects if journalling failed.
   */
  async run(): Promise<void> {
    const { sink } = this.#context;
    sink.onClose(() => this.#disconnected());
    this.#generation = await this.#begin();
    if (this.#generation === undefined) return;
    const text = this.#answer.body.toString('utf8');
    if (this.#request.facts.stream) {
      sink.onDrain(() => this.#flow());
      this.#text = text;
      this.#context.answerStream(this.#parts).begin();
      this.#flow();
    } else {
      const body = this.#task.renew!(text, this.#renewal);
      this.#settle(null, false, () => sink.reply(200, headersOf(this.#context), body));
    }
    const fault = await this.#finished.promise;
    if (fault !== undefined) throw fault;
  }

  /** Every accepted request has a row, even one that costs nothing. Undefined when the client has disconnected. */
  #begin(): Promise<OpenGeneration | undefined> {
    const { spend } = this.#parts;
    const { model, endpointId, providerName } = this.#answer;
    const reservation = spend.reserve([], NOTHING, this.#request.startedAt);
    if (reservation instanceof Promise || reservation.refused)
      throw new Error('a reservation without budgets was refused');
    const served = { model, endpointId, providerName, isByok: false };
    const free = { promptTokens: 0, promptNano: 0n, outputPrice: 0n, earlier: { creditNano: 0n, byokNano: 0n } };
    const accepted = acceptedOf(this.#context, this.#task.apiType);
    return spend.begin(accepted, { ...served, ...free }, reservation, () => !this.#over);
  }

  #flow(): void {
    const { sink } = this.#context;
    const renew = (json: string) => this.#task.renew!(json, this.#renewal);
    while (!this.#over) {
      const end = eventEnd(this.#text, this.#at + PIECE_LENGTH);
      const piece = renewedEvents(this.#text.slice(this.#at, end), renew);
      this.#at = end;
      if (end === this.#text.length) {
        this.#settle(null, false, () => this.#writeEnd(piece));
        return;
      }
      if (!sink.write(piece)) return;
    }
  }

  #disconnected(): void {
    if (this.#over) return;
    if (this.#generation === undefined) this.#over = true;
    else this.#settle(null, true, () => {});
  }

  interrupt(): void {
    if (this.#over) return;
    const error = shuttingDown();
    const { id, startedAt } = this.#request;
    if (this.#generation === undefined) {
      this.#over = true;
      answerError(this.#context, error, undefined);
      return;
    }
    const stamp = {
      id,
      model: this.#answer.model,
      provider: this.#answer.providerName ?? '',
      created: Math.floor(startedAt / 1000),
      usage: 'none' as const,
    };
    this.#settle(error, false, () => this.#writeEnd(this.#task.failureEvent(error, stamp, {})));
  }

  #writeEnd(text: string): void {
    const { sink } = this.#context;
    if (sink.closed) return;
    sink.write(text);
    sink.end();
  }

  #finish(fault?: unknown): void {
    this.#finished.resolve(fault);
    const { listeners, logged } = this.#context;
    if (listeners === undefined || this.#ended === undefined) return;
    // The transcript is read from the cached body, and only where content is logged.
    const text = () => this.#answer.body.toString('utf8');
    const { format, facts } = this.#request;
    const transcript =
      logged && isConversationFormat(format) ? transcriptOf(format, text(), facts.stream, logged) : undefined;
    notifyEnded(listeners, { ...this.#ended, transcript }, this.#parts.log);
  }

  /** @param send sends the end to the client; runs once the row is in the journal */
  #settle(error: GatewayError | null, cancelled: boolean, send: () => void): void {
    this.#over = true;
    const generationMs = this.#parts.clock.monotonic() - this.#startedAt;
    const row = cachedRowOf(this.#context, this.#task.apiType, this.#answer, { error, cancelled, generationMs });
    this.#ended = { row, error };
    settleTokens(this.#context, row);
    this.#context.sink.entered?.(row);
    this.#generation!.settle(row, () => this.#finish(faultOf(send)));
  }
}

/** The offset at which the first event that reaches `from` ends. */
function eventEnd(text: string, from: number): number {
  if (from >= text.length) return text.length;
  const found = text.indexOf('\n\n', from);
  return found === -1 ? text.length : found + 2;
}

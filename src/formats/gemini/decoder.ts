/**
 * Decodes `streamGenerateContent` event by event; a complete `generateContent` reply is one such event. The format has
 * no end marker: the reply ends with a finish reason (or a blocked prompt) and a closed connection, so finish and end
 * are emitted on close.
 */
import type { TurnEvent, Usage } from '../conversation/conversation.ts';
import type { FailureKind } from '../conversation/failure.ts';
import { countOf, type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { CandidateDecoder } from './candidate.ts';
import { failureOf } from './failure.ts';
import { blockedFinish, finishOf } from './finish.ts';
import { countsOutput, decodeUsage } from './usage.ts';

/** No request asks for more, so a higher index is invalid. */
const MOST_CANDIDATES = 128;

export class GeminiDecoder implements TurnDecoder {
  #started = false;
  #over = false;
  #blocked: { reason: string; message: string | undefined } | undefined;
  readonly #candidates: CandidateDecoder[] = [];
  readonly #seed: string;
  #model = '';
  /** A usage record from before any output. Reported at the end if no better one arrives. */
  #early: Usage | undefined;
  #counted = false;

  /**
   * `seed` is unique to this reply. It makes call ids unique if the service sends neither call ids nor a response id.
   */
  constructor(seed = '') {
    this.#seed = seed;
  }

  read(_name: string, data: string, value: unknown): TurnEvent[] {
    if (this.#over || data === '' || data === '[DONE]') return [];
    if (!isFields(value)) return this.#fail('malformed', null, 'an event of the stream is not a JSON object');
    if (isFields(value['error'])) {
      this.#over = true;
      return [{ type: 'failure', failure: failureOf(value, null) }];
    }
    const events: TurnEvent[] = this.#started ? [] : [this.#readHead(value)];
    const candidates = listOf(value['candidates']);
    for (const entry of candidates) {
      const candidate = fieldsOf(entry);
      const index = countOf(candidate['index']);
      if (index >= MOST_CANDIDATES)
        return [...events, ...this.#fail('malformed', null, 'a candidate index is too high')];
      this.#candidates[index] ??= new CandidateDecoder(index, this.#idPrefix(value));
      events.push(...this.#candidates[index].read(candidate));
    }
    const feedback = value['promptFeedback'];
    if (isFields(feedback) && (candidates.length === 0 || typeof feedback['blockReason'] === 'string')) {
      this.#blocked = {
        reason: textOrUndefined(feedback['blockReason']) ?? 'BLOCKED',
        message: textOrUndefined(feedback['blockReasonMessage']),
      };
    }
    this.#readUsage(value['usageMetadata'], events);
    return events;
  }

  close(): TurnEvent[] {
    return this.#end(true);
  }

  toldFinish(): boolean {
    if (this.#over) return false;
    const answered = this.#candidates.filter((candidate) => candidate !== undefined);
    return answered.length > 0 && answered.every(({ finishReason }) => finishReason !== undefined);
  }

  /** Ends a complete reply: complete JSON needs no finish reason. */
  closeWhole(): TurnEvent[] {
    return this.#end(false);
  }

  #end(strict: boolean): TurnEvent[] {
    if (this.#over) return [];
    const answered = this.#candidates.filter((candidate) => candidate !== undefined);
    const unfinished = answered.some((one) => one.finishReason === undefined && (strict || !one.said));
    if (this.#blocked === undefined && (answered.length === 0 || unfinished)) {
      return this.#fail('cut', null, 'the answer ended without a finish reason');
    }
    const broken = answered.find((one) => !one.said && finishOf(one.finishReason, 0, one.said).unified === 'error');
    if (broken !== undefined && !answered.some((one) => one.said)) return this.#failEmpty(broken);
    this.#over = true;
    const events: TurnEvent[] = answered.flatMap((one) => [
      ...one.close(),
      { type: 'finish' as const, choice: one.index, finish: this.#finishOf(one) },
    ]);
    if (this.#blocked !== undefined && events.length === 0) {
      events.push({ type: 'finish', choice: 0, finish: blockedFinish(this.#blocked.reason, this.#blocked.message) });
    }
    if (this.#early !== undefined) events.push({ type: 'usage', usage: this.#early });
    return [...events, { type: 'end' }];
  }

  #finishOf(candidate: CandidateDecoder) {
    if (candidate.finishReason === undefined && this.#blocked !== undefined) {
      return blockedFinish(this.#blocked.reason, this.#blocked.message);
    }
    return finishOf(candidate.finishReason, candidate.calls, candidate.said);
  }

  #readHead(value: Fields): TurnEvent {
    this.#started = true;
    this.#model = textOf(value['modelVersion']);
    const created = Date.parse(textOf(value['createTime']));
    return {
      type: 'start',
      id: textOrUndefined(value['responseId']),
      model: textOrUndefined(value['modelVersion']),
      serviceTier: textOrUndefined(fieldsOf(value['usageMetadata'])['serviceTier']),
      ...(Number.isFinite(created) && { created: Math.floor(created / 1000) }),
    };
  }

  #readUsage(metadata: unknown, events: TurnEvent[]): void {
    const usage = decodeUsage(metadata);
    if (usage === undefined) return;
    const searches = this.#searches();
    if (searches > 0) usage.webSearches = searches;
    if (!countsOutput(metadata) && this.#candidates.some((one) => one?.said)) {
      if (!this.#counted) this.#early = usage;
      return;
    }
    this.#counted = true;
    this.#early = undefined;
    events.push({ type: 'usage', usage });
  }

  /** Billed searches: one per query from the third generation on, one per reply before that. */
  #searches(): number {
    const queries = this.#candidates.reduce((sum, one) => sum + one.citations.queries.length, 0);
    return /gemini-[12]/.test(this.#model) ? Math.min(queries, 1) : queries;
  }

  #idPrefix(value: Fields): string {
    const own = textOf(value['responseId']).replaceAll(/[^A-Za-z0-9_-]/g, '');
    return `call_${own || this.#seed.replaceAll(/[^A-Za-z0-9_-]/g, '')}`;
  }

  /** A model error (malformed call, unknown tool) that left no output. */
  #failEmpty({ finishReason, finishMessage }: CandidateDecoder): TurnEvent[] {
    return this.#fail(
      'empty',
      200,
      `the answer ended with ${finishReason}${finishMessage ? `: ${finishMessage}` : ''}`,
    );
  }

  #fail(kind: FailureKind, status: number | null, message: string): TurnEvent[] {
    this.#over = true;
    return [{ type: 'failure', failure: { kind, status, message } }];
  }
}

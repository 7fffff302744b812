/**
 * Decodes an upstream's stream into turn events. Tolerates known service behavior: content as list or object, reasoning
 * under three names, calls that share an index, calls without ids or indexes, the legacy function call, missing deltas,
 * usage in any chunk, repeated finish reasons, errors with status 200.
 *
 * Finish reasons are held until the stream ends, because services repeat them and send content after them.
 */
import type { Citation, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOrUndefined, isTime, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { ChoiceDecoder } from './choice-decoder.ts';
import { hasSources, sourceCitations } from './citation.ts';
import { choiceFailure } from './decode-reply.ts';
import type { ChatDialect } from './dialect.ts';
import { cutFailure, decodeInBand, malformedFailure } from './failure.ts';
import { decodeUsage } from './usage.ts';

/** More choices than any service returns; a larger index is an error. */
const MOST_CHOICES = 256;

/** The index of a choice; 0 for an invalid one. */
export function choiceIndex(index: unknown): number {
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MOST_CHOICES ? index : 0;
}

export class ChatDecoder implements TurnDecoder {
  readonly #choices: ChoiceDecoder[] = [];
  #started = false;
  #over = false;
  #replyId: string | undefined;
  #sources: Citation[] = [];
  /** An object that is neither a chunk of the format nor known to occur between chunks. */
  #unknown: Fields | undefined;
  readonly #dialect: ChatDialect;

  constructor(dialect: ChatDialect = {}) {
    this.#dialect = dialect;
  }

  read(name: string, data: string, value: unknown): TurnEvent[] {
    if (this.#over) return [];
    const chunk = fieldsOrUndefined(value);
    if (chunk === undefined) {
      const marker = data.trim();
      if (marker === '[DONE]') return this.#finishMarked();
      return marker === '' ? [] : this.#fail([], malformedFailure('an event that is not a JSON object', data));
    }
    const events: TurnEvent[] = [];
    const usage = readUsage(chunk);
    const failure = decodeInBand(name, chunk);
    if (failure !== undefined) {
      if (usage !== undefined) events.push({ type: 'usage', usage });
      return this.#fail(events, failure);
    }
    if (!this.#started) this.#start(chunk, events);
    const entries = chunk['choices'];
    if (Array.isArray(entries)) {
      for (const entry of entries) {
        const choice = fieldsOrUndefined(entry);
        if (choice !== undefined) this.#choice(choice['index']).read(choice, events);
      }
    } else if (usage === undefined && isUnknown(chunk)) this.#unknown = chunk;
    if (hasSources(chunk)) this.#sources = sourceCitations(chunk, undefined);
    const safeguards = chunk['safeguard_results'];
    if (Array.isArray(safeguards)) events.push({ type: 'safeguards', results: safeguards });
    if (usage !== undefined) events.push({ type: 'usage', usage });
    const inChoice = choiceFailure(listOf(entries));
    return inChoice === undefined ? events : this.#fail(events, inChoice);
  }

  close(): TurnEvent[] {
    if (this.#over) return [];
    return this.#choices.some((choice) => choice?.finished) ? this.#finish() : this.#fail([], cutFailure());
  }

  toldFinish(): boolean {
    return !this.#over && this.#choices.length > 0 && this.#choices.every((choice) => choice.finished);
  }

  /** The first chunk that names the answer starts it; metadata chunks before it have empty names (Azure). */
  #start(chunk: Fields, events: TurnEvent[]): void {
    const id = nonEmptyText(chunk['id']);
    const model = nonEmptyText(chunk['model']);
    if (id === undefined && model === undefined && listOf(chunk['choices']).length === 0) return;
    this.#started = true;
    this.#replyId = id;
    const created = chunk['created'];
    const event: TurnEvent = { type: 'start' };
    if (id !== undefined) event.id = id;
    if (model !== undefined) event.model = model;
    if (isTime(created)) event.created = created;
    if (chunk['service_tier'] !== undefined) event.serviceTier = nonEmptyText(chunk['service_tier']) ?? null;
    if (chunk['system_fingerprint'] !== undefined)
      event.fingerprint = nonEmptyText(chunk['system_fingerprint']) ?? null;
    events.push(event);
  }

  #choice(index: unknown): ChoiceDecoder {
    const at = choiceIndex(index);
    // Earlier choices are created too, so that the list has no holes.
    while (this.#choices.length <= at)
      this.#choices.push(new ChoiceDecoder(this.#choices.length, this.#replyId, this.#dialect));
    return this.#choices[at]!;
  }

  /** Handles the end marker. Without a finish reason, an unknown object in the stream explains the early end. */
  #finishMarked(): TurnEvent[] {
    if (this.#unknown === undefined || this.#choices.some((choice) => choice.finished)) return this.#finish();
    return this.#fail([], malformedFailure('an unknown object instead of the rest of its answer', this.#unknown));
  }

  #finish(): TurnEvent[] {
    this.#over = true;
    const events: TurnEvent[] = [];
    if (!this.#started) events.push({ type: 'start' });
    // [DONE] without any choice is an empty answer.
    if (this.#choices.length === 0) this.#choice(0);
    for (const choice of this.#choices) {
      choice.close(this.#sources, events);
      this.#sources = [];
    }
    events.push({ type: 'end' });
    return events;
  }

  #fail(events: TurnEvent[], failure: UpstreamFailure): TurnEvent[] {
    this.#over = true;
    events.push({ type: 'failure', failure });
    return events;
  }
}

/** Whether an object without choices is neither marked as a chunk nor a keep-alive. */
function isUnknown(chunk: Fields): boolean {
  const kind = nonEmptyText(chunk['object']) ?? nonEmptyText(chunk['type']) ?? nonEmptyText(chunk['event']) ?? '';
  if (/^chat\.completion|ping|heart|keep/i.test(kind)) return false;
  return Object.keys(chunk).length > 0 && !hasSources(chunk) && chunk['safeguard_results'] === undefined;
}

function readUsage(chunk: Fields): Usage | undefined {
  const own = chunk['usage'];
  if (own !== undefined && own !== null) return decodeUsage(own);
  const groq = fieldsOrUndefined(chunk['x_groq']);
  if (groq !== undefined) return decodeUsage(groq['usage']);
  // Moonshot reports usage inside the choice.
  return decodeUsage(fieldsOrUndefined(listOf(chunk['choices'])[0])?.['usage']);
}

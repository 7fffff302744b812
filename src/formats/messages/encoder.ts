/** Encodes a streamed answer for a client of the messages format. */
import type { GatewayError } from '../../base/errors.ts';
import type { Finish, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { type Closing, costMembers, type Stamp, type StreamEncoder } from '../conversation/format.ts';
import { frame, StreamedPart } from './encoder-part.ts';
import { errorMember } from './failure.ts';
import { encodeFinish } from './finish.ts';
import { encodeUsage } from './usage.ts';

/**
 * Blocks must be strictly sequential: of interleaved parts, the first is streamed and the later ones are held until it
 * is closed (praxis-proxy/ai#266). Only the first choice is sent.
 */
export class MessagesEncoder implements StreamEncoder {
  readonly #stamp: Stamp;
  #started = false;
  #serviceTier: string | null | undefined;
  #usage: Usage | undefined;
  #finish: Finish = { unified: 'stop', native: null };
  #safeguards: unknown[] | undefined;
  #calls = false;
  #refused = false;
  /** Parts not yet closed on the wire, in order; the first is the one being streamed. */
  readonly #waiting: StreamedPart[] = [];
  #nextBlock = 0;

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  event(event: TurnEvent): string {
    switch (event.type) {
      case 'start':
        // Wait for the usage that most upstreams send next: it belongs in the opening event.
        this.#serviceTier = event.serviceTier;
        return '';
      case 'usage':
        this.#usage = event.usage;
        return this.#open();
      case 'partStart':
        if (event.choice !== 0) return '';
        if (event.part.type === 'toolCall') this.#calls = true;
        this.#waiting.push(new StreamedPart(event.index, event.part));
        return this.#open() + (this.#waiting.length === 1 ? this.#begin() : '');
      case 'partDelta': {
        if (event.choice !== 0) return '';
        const part = this.#find(event.index);
        if (part === undefined) return '';
        if (part.part.type === 'refusal' && event.delta.text) this.#refused = true;
        if (part !== this.#waiting[0]) {
          part.hold(event.delta);
          return '';
        }
        return this.#told(part.write(event.delta, this.#nextBlock), part);
      }
      case 'partStop': {
        if (event.choice !== 0) return '';
        const part = this.#find(event.index);
        if (part === undefined) return '';
        part.stopped = true;
        return part === this.#waiting[0] ? this.#advance() : '';
      }
      case 'safeguards':
        this.#safeguards = event.results;
        return '';
      case 'finish':
        if (event.choice === 0) this.#finish = event.finish;
        return '';
      default:
        return '';
    }
  }

  end(closing: Closing): string {
    if (this.#finish.unified === 'error') return this.#rest(true) + frame('error', UPSTREAM_ERROR);
    const usage = closing.usage ?? this.#usage;
    const delta: Fields = {
      type: 'message_delta',
      delta: {
        ...encodeFinish(this.#finish, { calls: this.#calls, refused: this.#refused }),
        container: null,
        ...(this.#safeguards && { safeguard_results: this.#safeguards }),
      },
      usage: { ...encodeUsage(usage, this.#serviceTier), ...costMembers(closing.cost) },
    };
    return (
      this.#rest() +
      frame('message_delta', delta) +
      frame('message_stop', withMetadata({ type: 'message_stop' }, closing))
    );
  }

  failure(error: GatewayError, closing: Closing): string {
    // If nothing was sent yet, the error is the only event.
    const begun = this.#started || this.#waiting.length > 0;
    return (begun ? this.#rest(true) : '') + errorEvent(error, closing);
  }

  /**
   * Sends everything held and closes its blocks. If the stream failed, an unfinished call stays open and later parts
   * are not sent: a client may run a call as soon as its block is closed.
   */
  #rest(failed = false): string {
    let text = this.#open();
    for (const part of this.#waiting) part.stopped ||= !failed || part.part.type !== 'toolCall';
    if (this.#waiting.length > 0) text += this.#advance();
    return text;
  }

  #open(): string {
    if (this.#started) return '';
    this.#started = true;
    return frame('message_start', {
      type: 'message_start',
      message: {
        id: this.#stamp.id,
        type: 'message',
        role: 'assistant',
        model: this.#stamp.model,
        provider: this.#stamp.provider,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        stop_details: null,
        container: null,
        usage: this.#openingUsage(),
      },
    });
  }

  /** Clients show the prompt tokens at once. Most upstreams report theirs at the end, which replaces this estimate. */
  #openingUsage(): Fields {
    const usage = encodeUsage(this.#usage, this.#serviceTier);
    const estimated = this.#usage === undefined ? this.#stamp.promptTokens : undefined;
    return estimated === undefined ? usage : { ...usage, input_tokens: estimated };
  }

  #find(index: number): StreamedPart | undefined {
    return this.#waiting.find((part) => part.index === index);
  }

  /** Sends the current part as far as it is known. */
  #begin(): string {
    const part = this.#waiting[0];
    if (part === undefined) return '';
    if (part.part.type === 'refusal' && part.part.text !== '') this.#refused = true;
    return this.#told(part.begin(this.#nextBlock), part);
  }

  /** Closes the current part and continues with the held ones as far as they have been received. */
  #advance(): string {
    let text = '';
    for (let part = this.#waiting[0]; part?.stopped; part = this.#waiting[0]) {
      text += this.#told(part.close(this.#nextBlock), part);
      this.#waiting.shift();
      text += this.#begin();
    }
    return text;
  }

  #told(text: string, part: StreamedPart): string {
    this.#nextBlock += part.takeBlocks();
    return text;
  }
}

const UPSTREAM_ERROR = {
  type: 'error',
  error: {
    type: 'api_error',
    message: 'the provider ended its answer with an error',
    error_type: 'provider_unavailable',
  },
};

/** The event that ends a failed stream; nothing may follow it. */
export function errorEvent(error: GatewayError, closing: Closing): string {
  const body = { type: 'error', error: errorMember(error) };
  return frame('error', error.status === 500 ? body : withMetadata(body, closing));
}

function withMetadata(event: Fields, closing: Closing): Fields {
  return closing.metadata === undefined ? event : { ...event, [closing.metadata.key]: closing.metadata.value };
}

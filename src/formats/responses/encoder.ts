/** Encodes a reply as an event stream for a client of the responses format. */
import { GatewayError } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import { messageOf } from '../chat/encode-failure.ts';
import type { Finish, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, Stamp, StreamEncoder } from '../conversation/format.ts';
import { endedInError } from './encode-reply.ts';
import { Output } from './output.ts';
import { endOf, errorCode, isLimit, type ResponseState, responseOf } from './response.ts';

/**
 * Ends every stream of this format, failed ones too: it cannot pass for success. Clients read the outcome from
 * `response.completed`, `response.incomplete`, `response.failed` or `error` (the OpenAI SDKs, Codex and the AI SDK
 * ignore the marker or only stop reading at it).
 */
export const DONE = 'data: [DONE]\n\n';

/**
 * The stream ends with the whole reply repeated, so all of it is kept in memory. In UTF-16 units; no model writes more.
 */
const LARGEST_ANSWER = 32 * 1024 * 1024;

/** One server-sent event. */
export function frame(type: string, members: Fields): string {
  return `event: ${type}\ndata: ${stringifyJson({ type, ...members })}\n\n`;
}

/** Encodes the first choice only; the format has no others. */
export class ResponsesEncoder implements StreamEncoder {
  readonly #stamp: Stamp;
  readonly #output: Output;
  #sequence = 0;
  #text = '';
  #opened = false;
  /** Characters sent so far. */
  #size = 0;
  #created: number;
  #serviceTier: string | null | undefined;
  #usage: Usage | undefined;
  #finish: Finish = { unified: 'stop', native: null };

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
    this.#created = stamp.created;
    this.#output = new Output(stamp.id, (type, members) => this.#tell(type, members));
  }

  event(event: TurnEvent): string {
    if (this.#size > LARGEST_ANSWER && (event.type === 'partStart' || event.type === 'partDelta')) return '';
    switch (event.type) {
      case 'start':
        this.#created = event.created ?? this.#created;
        this.#serviceTier = event.serviceTier;
        return '';
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'partStart':
        if (event.choice === 0) this.#output.start(event.index, event.part);
        break;
      case 'partDelta':
        if (event.choice === 0) this.#output.add(event.index, event.delta);
        break;
      case 'partStop':
        if (event.choice === 0) this.#output.stop(event.index);
        break;
      case 'logprobs':
        if (event.choice === 0) this.#output.logprobs(event.logprobs.content ?? []);
        break;
      case 'finish':
        if (event.choice === 0) {
          this.#finish = event.finish;
          this.#output.finish(event.finish.unified);
        }
        break;
      default:
    }
    return this.#take();
  }

  end(closing: Closing): string {
    const known = { ...closing, usage: closing.usage ?? this.#usage };
    this.#open();
    if (this.#finish.unified === 'error' || this.#size > LARGEST_ANSWER) {
      const error = this.#size > LARGEST_ANSWER ? tooLarge() : endedInError();
      this.#close('response.failed', { status: 'failed', error, output: this.#output.broken() }, known);
      return this.#take() + DONE;
    }
    const output = this.#output.end();
    const end = endOf(this.#finish);
    this.#close(`response.${end.status}`, { ...end, output }, known);
    return this.#take() + DONE;
  }

  /** Before anything was sent, the failure is a single `error` event. */
  failure(error: GatewayError, closing: Closing): string {
    if (!this.#opened) {
      const { type, ...members } = errorEvent(error, this.#sequence);
      return frame(type, members) + DONE;
    }
    const known = { ...closing, usage: closing.usage ?? this.#usage };
    const output = this.#output.broken();
    if (isLimit(error, output)) {
      this.#close('response.incomplete', { status: 'incomplete', reason: 'max_output_tokens', output }, known);
    } else this.#close('response.failed', { status: 'failed', error, output }, known);
    return this.#take() + DONE;
  }

  #tell(type: string, members: Fields): void {
    this.#open();
    this.#write(type, members);
  }

  #write(type: string, members: Fields): void {
    this.#text += frame(type, { ...members, sequence_number: this.#sequence });
    this.#sequence += 1;
  }

  #open(): void {
    if (this.#opened) return;
    this.#opened = true;
    const response = responseOf(this.#stamp, this.#state('in_progress', []));
    this.#write('response.created', { response });
    this.#write('response.in_progress', { response });
  }

  #close(type: string, end: Omit<ResponseState, 'created' | 'serviceTier'>, closing: Closing): void {
    this.#write(type, {
      response: responseOf(this.#stamp, { ...this.#state(end.status, end.output), ...end }, closing),
    });
  }

  #state(status: ResponseState['status'], output: readonly unknown[]): ResponseState {
    return { status, output, created: this.#created, serviceTier: this.#serviceTier };
  }

  #take(): string {
    const text = this.#text;
    this.#text = '';
    this.#size += text.length;
    return text;
  }
}

function tooLarge(): GatewayError {
  return new GatewayError('provider_unavailable', "the provider's answer is too large for the responses format");
}

/** The plain `error` event. */
export function errorEvent(error: GatewayError, sequence: number): Fields & { type: string } {
  return {
    type: 'error',
    code: errorCode(error),
    message: messageOf(error),
    param: error.details.path ?? null,
    error_type: error.type,
    sequence_number: sequence,
  };
}

/** Encodes turn events as the event stream for a client of the chat format. */
import type { GatewayError } from '../../base/errors.ts';
import type { Finish, TurnEvent } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, Stamp, StreamEncoder } from '../conversation/format.ts';
import { DeltaWriter, type Piece } from './delta-writer.ts';
import { errorObject } from './encode-failure.ts';
import { closingUsage } from './usage.ts';

export const DONE = 'data: [DONE]\n\n';

export class ChatEncoder implements StreamEncoder {
  #safeguards: Fields = {};
  readonly #stamp: Stamp;
  readonly #writer: DeltaWriter;
  readonly #introduced = new Set<number>();
  readonly #finishes = new Map<number, Finish>();
  /** The text of every chunk before and after its choices. */
  #head = '';
  #tail = '';

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
    this.#writer = new DeltaWriter(stamp.customTools === true);
    this.#frame({ type: 'start' });
  }

  event(event: TurnEvent): string {
    switch (event.type) {
      case 'start':
        this.#frame(event);
        return '';
      case 'finish':
        // Held until the closing figures are known: usage may be added to it, and an error may still follow.
        this.#finishes.set(event.choice, event.finish);
        return '';
      case 'safeguards':
        this.#safeguards = { safeguard_results: event.results };
        return '';
      case 'usage':
      case 'failure':
      case 'end':
        return '';
      default: {
        const pieces: Piece[] = [];
        this.#writer.write(event, pieces);
        let text = '';
        for (const piece of pieces) text += this.#chunk(piece);
        return text;
      }
    }
  }

  end(closing: Closing): string {
    if (this.#finishes.size === 0) this.#finishes.set(0, { unified: 'stop', native: null });
    const usage = this.#stamp.usage === 'none' ? undefined : closingUsage(closing);
    const more = ownMembers(closing);
    const separate = this.#stamp.usage === 'chunk' && usage !== undefined;
    const last = [...this.#finishes.keys()].at(-1);
    let text = '';
    for (const [choice, finish] of this.#finishes) {
      text += this.#introduction(choice);
      const choices = `{"index":${choice},"delta":{},"finish_reason":"${finish.unified}","native_finish_reason":${JSON.stringify(finish.native)}}`;
      const extra: Fields =
        choice === last && !separate ? { ...this.#safeguards, ...(usage && { usage }), ...more } : {};
      text += this.#whole(choices, extra);
    }
    if (separate) text += this.#whole('', { ...this.#safeguards, usage, ...more });
    return text + DONE;
  }

  failure(error: GatewayError, closing: Closing): string {
    const usage = this.#stamp.usage === 'none' ? undefined : closingUsage(closing);
    return this.#whole(ERROR_CHOICE, { error: errorObject(error), ...(usage && { usage }), ...ownMembers(closing) });
  }

  #frame(start: TurnEvent & { type: 'start' }): void {
    const { id, model, provider, created } = this.#stamp;
    const named = { id, object: 'chat.completion.chunk', created: start.created ?? created, model, provider };
    this.#head = `data: ${JSON.stringify(named).slice(0, -1)},"choices":[`;
    this.#tail = ']';
    if (start.fingerprint != null) this.#tail += `,"system_fingerprint":${JSON.stringify(start.fingerprint)}`;
    if (start.serviceTier != null) this.#tail += `,"service_tier":${JSON.stringify(start.serviceTier)}`;
  }

  #introduction(choice: number): string {
    if (this.#introduced.has(choice)) return '';
    this.#introduced.add(choice);
    return this.#whole(`{"index":${choice},"delta":{"role":"assistant","content":""},"finish_reason":null}`, {});
  }

  #chunk(piece: Piece): string {
    const logprobs = piece.logprobs === undefined ? '' : `,"logprobs":${JSON.stringify(piece.logprobs)}`;
    const choice = `{"index":${piece.choice},"delta":${JSON.stringify(piece.delta)},"finish_reason":null${logprobs}}`;
    return `${this.#introduction(piece.choice)}${this.#head}${choice}${this.#tail}}\n\n`;
  }

  #whole(choices: string, extra: Fields): string {
    const members = JSON.stringify(extra);
    const more = members === '{}' ? '}' : `,${members.slice(1)}`;
    return `${this.#head}${choices}${this.#tail}${more}\n\n`;
  }
}

/** Members of the gateway besides `usage`. */
function ownMembers({ metadata, alignment }: Closing): Fields {
  return { ...(alignment && { alignment }), ...(metadata && { [metadata.key]: metadata.value }) };
}

/** The choice in the chunk that reports a failed stream. */
export const ERROR_CHOICE = '{"index":0,"delta":{"content":""},"finish_reason":"error","native_finish_reason":null}';

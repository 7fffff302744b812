/**
 * Encodes turn events as the event stream for a client of the format. Finish reasons, sources and usage are in the last
 * event. Every event has a candidate with a part: SDKs drop the whole answer from their history otherwise.
 */
import type { GatewayError } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import type { Finish, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Closing, Stamp, StreamEncoder } from '../conversation/format.ts';
import { errorMember } from './encode-failure.ts';
import { headOf, logprobsOf, metadataOf, shows } from './encode-reply.ts';
import { encodeUsage } from './encode-usage.ts';
import { encodeFinish } from './finish.ts';
import { PartWriter } from './part-writer.ts';

interface Candidate {
  writer: PartWriter;
  finish: Finish;
}

export class GeminiEncoder implements StreamEncoder {
  readonly #stamp: Stamp;
  readonly #candidates: Candidate[] = [];
  #created: number | undefined;
  #tier: string | null | undefined;
  #usage: Usage | undefined;

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  event(event: TurnEvent): string {
    switch (event.type) {
      case 'start':
        this.#created = event.created;
        this.#tier = event.serviceTier;
        return '';
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'partStart':
        return this.#candidateEvent(event.choice, this.#at(event.choice).writer.start(event.index, event.part));
      case 'partDelta':
        return this.#candidateEvent(event.choice, this.#at(event.choice).writer.delta(event.index, event.delta));
      case 'partStop':
        return this.#candidateEvent(event.choice, this.#at(event.choice).writer.stop(event.index));
      case 'logprobs': {
        const logprobsResult = logprobsOf(event.logprobs);
        return logprobsResult === undefined
          ? ''
          : this.#candidateEvent(event.choice, [{ text: '' }], { logprobsResult });
      }
      case 'finish':
        // Held until the closing figures are known: an error may still follow.
        this.#at(event.choice).finish = event.finish;
        return '';
      default:
        return '';
    }
  }

  end(closing: Closing): string {
    if (this.#candidates.length === 0) this.#at(0);
    const failed = this.#candidates.every(({ finish }) => finish.unified === 'error');
    if (failed) return frame({ error: UPSTREAM_ERROR });
    const candidates = this.#candidates.map(({ writer, finish }, index) => {
      const parts = writer.left();
      return {
        ...candidateOf(index, parts.length === 0 ? [{ text: '' }] : parts),
        finishReason: encodeFinish(finish),
        ...writer.grounding.members,
      };
    });
    const usageMetadata = encodeUsage(closing.usage ?? this.#usage, closing, this.#tier);
    return frame({ candidates, ...this.#head, usageMetadata, ...metadataOf(closing) });
  }

  failure(error: GatewayError, closing: Closing): string {
    return errorEvent(error, closing);
  }

  get #head(): Fields {
    return headOf(this.#stamp, this.#created);
  }

  #at(index: number): Candidate {
    while (this.#candidates.length <= index) {
      this.#candidates.push({
        writer: new PartWriter(shows(this.#stamp)),
        finish: { unified: 'stop', native: null },
      });
    }
    return this.#candidates[index]!;
  }

  #candidateEvent(choice: number, parts: Fields[], more: Fields = {}): string {
    if (parts.length === 0) return '';
    return frame({ candidates: [{ ...candidateOf(choice, parts), ...more }], ...this.#head });
  }
}

function candidateOf(index: number, parts: Fields[]): Fields {
  return { content: { role: 'model', parts }, index };
}

function frame(value: Fields): string {
  return `data: ${stringifyJson(value)}\n\n`;
}

const UPSTREAM_ERROR = {
  code: 502,
  message: 'the provider ended its answer with an error',
  status: 'UNAVAILABLE',
};

/** The event that ends a failed stream; nothing may follow it. */
export function errorEvent(error: GatewayError, closing: Closing): string {
  const more = error.status === 500 ? {} : metadataOf(closing);
  const usage = closing.usage === undefined ? {} : { usageMetadata: encodeUsage(closing.usage, closing) };
  return frame({ error: errorMember(error), ...usage, ...more });
}

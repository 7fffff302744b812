/** One call of an answer that takes several (formats/deferred): what it brings behind its end is nobody's. */
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { UpstreamCall, UpstreamReceiver } from '../providers/index.ts';

/** Passes on what one call of several brings, until the next one begins. */
export class RoundReceiver implements UpstreamReceiver {
  #attempt: UpstreamReceiver | undefined;
  #call: UpstreamCall | undefined;

  constructor(attempt: UpstreamReceiver) {
    this.#attempt = attempt;
  }

  leave(call: UpstreamCall | undefined): void {
    this.#attempt = undefined;
    this.#call = call;
  }

  head(status: number, headers: Record<string, string>): void {
    this.#attempt?.head(status, headers);
  }

  data(chunk: Buffer): void {
    // More after the end marker is of no use to anybody, and may never end.
    if (this.#attempt === undefined) this.#call?.abort();
    else this.#attempt.data(chunk);
  }

  end(): void {
    this.#attempt?.end();
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    this.#attempt?.failed(failure, sent);
  }
}

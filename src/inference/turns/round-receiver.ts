/** Receiver for an answer of several upstream calls (`formats/deferred`): ignores a call after its round is over. */
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { UpstreamCall, UpstreamReceiver } from '../../providers/index.ts';

/** Forwards one call's callbacks until the next call begins. */
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
    // Data after the end marker is useless and may never end.
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

/**
 * Why a fetch failed.
 *  - `url`: not an http(s) URL, or a forbidden port; `address`: the host is not public
 *  - `redirect`: too many, or from https to http; `size`, `time`: over a limit
 *  - `network`: no connection, or it broke; `busy`: too many at once; `cancelled`: cancelled by the caller
 */
export type EgressFault = 'url' | 'address' | 'redirect' | 'size' | 'time' | 'network' | 'busy' | 'cancelled';

/** The message may be shown to the caller: it reveals neither resolved addresses nor anything about the host. */
export class EgressError extends Error {
  readonly fault: EgressFault;

  constructor(fault: EgressFault, message: string) {
    super(message);
    this.name = 'EgressError';
    this.fault = fault;
  }
}

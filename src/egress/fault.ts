/**
 * Why something was not fetched.
 *  - `url`: not an http(s) address of this rule's ports; `address`: it leads to a place that is not public
 *  - `redirect`: too many, from https to http, or to nowhere; `size`, `time`: past a limit
 *  - `network`: no connection, or it broke; `busy`: too many at once; `cancelled`: the caller asked for it
 */
export type EgressFault = 'url' | 'address' | 'redirect' | 'size' | 'time' | 'network' | 'busy' | 'cancelled';

/** The message may be shown to the caller: it names neither addresses that a name resolved to nor what stands behind them. */
export class EgressError extends Error {
  readonly fault: EgressFault;

  constructor(fault: EgressFault, message: string) {
    super(message);
    this.name = 'EgressError';
    this.fault = fault;
  }
}

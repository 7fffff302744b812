/** The headers of W3C Trace Context. */

/** What a client says about its own trace. */
export interface RemoteParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  /** The header `tracestate`, to be passed on as it is. */
  readonly state: string | undefined;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const NOTHING_BUT_ZEROS = /^0+$/;
const SAMPLED = 1;

/** Undefined if there is none, or if it is malformed: the request begins a trace of its own then. */
export function remoteParent(headers: Headers): RemoteParent | undefined {
  const given = headers['traceparent'];
  if (typeof given !== 'string') return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(given) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  // Later versions may have more members.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (NOTHING_BUT_ZEROS.test(traceId) || NOTHING_BUT_ZEROS.test(spanId)) return undefined;
  const state = headers['tracestate'];
  return {
    ...{ traceId, spanId },
    sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED,
    state: typeof state === 'string' && TRACESTATE.test(state) ? state : undefined,
  };
}

export function traceparent(traceId: string, spanId: string, sampled: boolean): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

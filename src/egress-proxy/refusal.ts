/**
 * Why the proxy does not forward something.
 *  - `not_a_proxy_request`, `bad_request`: the request itself
 *  - `not_allowed`, `port`, `address`: where it leads
 *  - `secret_elsewhere`: it carries the placeholder of a secret that is not bound to the host
 *  - `secret_unsendable`: a secret cannot be written at that place
 *  - `secret_returned`: a value came back where it cannot be replaced
 *  - `misdirected`: it names another host than the tunnel
 *  - `upstream`, `certificate`, `encoding`: the host could not be reached, verified or checked
 *  - `too_large`, `busy`: a limit
 */
type RefusalReason =
  | 'not_a_proxy_request'
  | 'bad_request'
  | 'not_allowed'
  | 'port'
  | 'address'
  | 'secret_elsewhere'
  | 'secret_unsendable'
  | 'secret_returned'
  | 'misdirected'
  | 'upstream'
  | 'certificate'
  | 'encoding'
  | 'too_large'
  | 'busy';

const STATUS: Record<RefusalReason, number> = {
  not_a_proxy_request: 400,
  bad_request: 400,
  not_allowed: 403,
  port: 403,
  address: 403,
  secret_elsewhere: 403,
  secret_unsendable: 403,
  secret_returned: 502,
  misdirected: 421,
  upstream: 502,
  certificate: 502,
  encoding: 502,
  too_large: 431,
  busy: 503,
};

/** The message is shown in the sandbox. It never contains a secret's value. */
export class Refusal extends Error {
  readonly reason: RefusalReason;
  readonly status: number;
  /** The name of the secret that it is about. */
  readonly secret: string | undefined;

  constructor(reason: RefusalReason, message: string, secret?: string) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
    this.status = STATUS[reason];
    this.secret = secret;
  }
}

/** Anything else that went wrong is a fault of the connection; its text may contain anything, so it is not shown. */
export function asRefusal(error: unknown, host: string): Refusal {
  return error instanceof Refusal ? error : new Refusal('upstream', `The connection to ${host} failed.`);
}

/** The reasons in the words of RFC 9209, for the header `Proxy-Status`. */
const PROXY_ERRORS: Partial<Record<RefusalReason, string>> = {
  not_a_proxy_request: 'http_request_error',
  bad_request: 'http_request_error',
  address: 'destination_ip_prohibited',
  upstream: 'destination_unavailable',
  certificate: 'tls_certificate_error',
  encoding: 'http_response_content_coding',
  busy: 'connection_limit_reached',
};

/** The response to a refused request, in the sandbox. */
export function refusalResponse({ reason, message }: Refusal): { headers: Record<string, string>; body: string } {
  const error = PROXY_ERRORS[reason] ?? 'http_request_denied';
  const body = `${message}\n`;
  return {
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': String(Buffer.byteLength(body)),
      'proxy-status': `gatehouse; error=${error}; details="${reason}: ${message.replace(/[^ !#-[\]-~]/g, '_')}"`,
    },
    body,
  };
}

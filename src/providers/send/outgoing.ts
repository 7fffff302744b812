/** Outbound connection settings for `createTransport`. */
import type { Config } from '../../base/config.ts';
import { redact } from '../../base/log.ts';
import type { TransportOptions } from './transport.ts';

/** Also registers proxy passwords for redaction in logs. */
export function outgoingOf({
  outgoing: { proxy, extraCa },
}: Pick<Config, 'outgoing'>): Pick<TransportOptions, 'proxy' | 'extraCa'> {
  for (const address of [proxy.https, proxy.http]) {
    const url = address && URL.parse(address.reveal());
    for (const secret of url ? [url.password, decodeURIComponent(url.password)] : []) if (secret) redact(secret);
  }
  const { https, http, exceptions } = proxy;
  return {
    proxy: { https: https?.reveal() ?? null, http: http?.reveal() ?? null, exceptions },
    ...(extraCa !== null && { extraCa }),
  };
}

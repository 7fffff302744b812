/**
 * The providers: reachable, and their credentials accepted. Lists each provider's models, which is free; only a rejected
 * credential in the response counts.
 */
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import {
  createTransport,
  type DeliveryParts,
  deliver,
  outgoingOf,
  type Provider,
  providersFrom,
} from '../../providers/index.ts';
import { type Finding, fault, note, ok } from './finding.ts';

const TIMEOUTS = { connect: 5_000, firstByte: 10_000, idle: 5_000, stall: 15_000, total: 15_000 };
/** Providers checked concurrently. */
const AT_ONCE = 8;

export async function examineProviders(config: Config, clock: Clock, log: Log): Promise<Finding[]> {
  const transport = createTransport({ clock, log, ...outgoingOf(config) });
  try {
    const waiting = providersFrom(config).flatMap((provider) => {
      if (provider.kind.transport !== undefined) return [];
      const credentials = provider.credentials.length === 0 ? [null] : provider.credentials;
      return credentials.map((credential, at) => ({ provider, credential, place: numbered(credentials.length, at) }));
    });
    if (waiting.length === 0) {
      return [note('provider', 'only the simulated provider answers', 'set a variable such as OPENAI_API_KEY')];
    }
    const findings: Finding[] = [];
    while (waiting.length > 0) {
      const batch = waiting.splice(0, AT_ONCE);
      findings.push(
        ...(await Promise.all(
          batch.map(({ provider, credential, place: suffix }) =>
            check(provider, credential, suffix, { transport, clock, log }),
          ),
        )),
      );
    }
    return findings;
  } finally {
    await transport.close();
  }
}

function numbered(count: number, at: number): string {
  return count > 1 ? ` (credential ${at + 1} of ${count})` : '';
}

function check(provider: Provider, credential: string | null, suffix: string, parts: DeliveryParts): Promise<Finding> {
  const name = `${provider.id}${suffix}`;
  // Signed calls need a sign-in; without one, only the reachability of the address can be checked.
  const signed = provider.signer !== undefined;
  const { signer: _, ...unsigned } = provider;
  return new Promise((resolve) => {
    let status = 0;
    deliver(
      {
        provider: { ...unsigned, timeouts: TIMEOUTS },
        credential: signed ? null : credential,
        format: provider.kind.speaks ?? 'chat',
        model: '',
        stream: false,
        path: '/models',
        operation: 'models',
        method: 'GET',
        body: '',
      },
      {
        head: (received) => {
          status = received;
        },
        data: () => {},
        end: () => resolve(findingOf(name, status, signed, credential)),
        failed: ({ message, kind }) =>
          resolve(
            status > 0
              ? findingOf(name, status, signed, credential)
              : fault('provider', `${name} cannot be reached at ${provider.baseUrl} (${kind}: ${message})`, ADVICE),
          ),
      },
      parts,
    );
  });
}

const ADVICE =
  'check base_url, and with a proxy or a private certificate authority HTTPS_PROXY, NO_PROXY and GATEHOUSE_CA_FILE';

function findingOf(name: string, status: number, signed: boolean, credential: string | null): Finding {
  if (signed) return ok('provider', `${name} is reachable; its sign-in was not tested`);
  if (status === 401 || status === 403) {
    return credential === null
      ? fault('provider', `${name} requires a credential (status ${status})`, 'set its api_key')
      : fault('provider', `${name} rejects the credential (status ${status})`, 'replace its api_key');
  }
  if (status === 407) return fault('provider', `the proxy for ${name} requires a credential`, ADVICE);
  if (status >= 500) return note('provider', `${name} is reachable but responds with status ${status}`);
  return ok(
    'provider',
    credential === null ? `${name} is reachable` : `${name} is reachable and accepts the credential`,
  );
}

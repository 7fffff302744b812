/**
 * The providers: reached, and their credentials taken. Each is asked for its list of models, which costs nothing; what
 * it answers besides a refusal of the credential is not judged.
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
/** Providers that are asked at the same time. */
const AT_ONCE = 8;

export async function examineProviders(config: Config, clock: Clock, log: Log): Promise<Finding[]> {
  const transport = createTransport({ clock, log, ...outgoingOf(config) });
  try {
    const waiting = providersFrom(config).flatMap((provider) => {
      if (provider.kind.transport !== undefined) return [];
      const credentials = provider.credentials.length === 0 ? [null] : provider.credentials;
      return credentials.map((credential, at) => ({ provider, credential, place: placeOf(credentials.length, at) }));
    });
    if (waiting.length === 0) {
      return [note('provider', 'only the simulated provider answers', 'set a variable such as OPENAI_API_KEY')];
    }
    const findings: Finding[] = [];
    while (waiting.length > 0) {
      const batch = waiting.splice(0, AT_ONCE);
      findings.push(
        ...(await Promise.all(
          batch.map(({ provider, credential, place }) => ask(provider, credential, place, { transport, clock, log })),
        )),
      );
    }
    return findings;
  } finally {
    await transport.close();
  }
}

function placeOf(count: number, at: number): string {
  return count > 1 ? ` (credential ${at + 1} of ${count})` : '';
}

function ask(provider: Provider, credential: string | null, place: string, parts: DeliveryParts): Promise<Finding> {
  const name = `${provider.id}${place}`;
  // Signed calls have credentials of their own kind; that the address answers is what can be told without making one.
  const signed = provider.signer !== undefined;
  const { signer: _, ...unsigned } = provider;
  return new Promise((resolve) => {
    let status = 0;
    deliver(
      {
        provider: { ...unsigned, timeouts: TIMEOUTS },
        credential: signed ? null : credential,
        form: provider.kind.speaks ?? 'chat',
        model: '',
        stream: false,
        path: '/models',
        operation: 'models',
        method: 'GET',
        body: '',
      },
      {
        head: (told) => {
          status = told;
        },
        data: () => {},
        end: () => resolve(judge(name, status, signed, credential)),
        failed: ({ message, kind }) =>
          resolve(
            status > 0
              ? judge(name, status, signed, credential)
              : fault('provider', `${name} cannot be reached at ${provider.baseUrl} (${kind}: ${message})`, ADVICE),
          ),
      },
      parts,
    );
  });
}

const ADVICE =
  'see base_url, and HTTPS_PROXY, NO_PROXY and GATEHOUSE_CA_FILE where a proxy or an own authority stands between';

function judge(name: string, status: number, signed: boolean, credential: string | null): Finding {
  if (signed) return ok('provider', `${name} is reached; its sign-in is not tried`);
  if (status === 401 || status === 403) {
    return credential === null
      ? fault('provider', `${name} asks for a credential (status ${status})`, 'set its api_key')
      : fault('provider', `${name} refuses the credential (status ${status})`, 'replace its api_key');
  }
  if (status === 407) return fault('provider', `the proxy on the way to ${name} asks for a credential`, ADVICE);
  if (status >= 500) return note('provider', `${name} is reached and answers with status ${status}`);
  return ok('provider', credential === null ? `${name} is reached` : `${name} is reached and takes the credential`);
}

/** AWS signatures, version 4, by the vendor's own library, which is loaded on the first call that needs it. */
import type { SignatureV4 } from '@smithy/signature-v4';
import { joinedBody } from '../../base/body.ts';
import type { Clock } from '../../base/clock.ts';
import { eventStreamReady } from '../framing/bedrock-event-stream.ts';
import type { Provider } from '../provider.ts';
import type { UpstreamRequest } from '../send/transport.ts';
import { type AwsKeys, chainKeeper, isKeyDocument, readKeyDocument } from './bedrock-credentials.ts';
import type { Signature, Signer } from './sign.ts';
import { SigningHash } from './signing-hash.ts';

const USUAL_REGION = 'us-east-1';

/** Bearer tokens are sent unchanged, AWS keys sign, and without a credential the AWS credential chain provides keys. */
export function awsSigner({ options, baseUrl }: Provider): Signer {
  const region = regionOf({ options, baseUrl });
  const chain = chainKeeper(options['profile']);
  return {
    sign: ({ request, credential, operation, clock }) => {
      const ready = eventStreamReady();
      if (credential !== null && !isKeyDocument(credential)) return nothing(ready);
      const keys = credential === null ? chain.token(clock) : readKeyDocument(credential);
      const service = operation === 'bucket' ? 's3' : 'bedrock';
      return signedWith(request, keys, { region, service, clock }, ready);
    },
    refused: (credential) => {
      if (credential === null) chain.forget();
    },
  };
}

/** Bearer tokens need no signature, but the event-stream codec must be loaded before the reply arrives. */
export function nothing(ready: Promise<void> | undefined): Signature | Promise<Signature> {
  return ready === undefined ? {} : ready.then(() => ({}));
}

async function signedWith(
  request: UpstreamRequest,
  keys: AwsKeys | Promise<AwsKeys>,
  scope: Scope,
  ready: Promise<void> | undefined,
): Promise<Signature> {
  const [found] = await Promise.all([keys, ready]);
  return signatureOf(request, found, scope);
}

interface Scope {
  region: string;
  service: string;
  clock: Clock;
}

/**
 * The headers that sign a request over its method, path, body and existing headers. The URL's path must be
 * percent-encoded once, as it will be sent; the signature encodes it again, as AWS requires for every service except
 * S3.
 */
export async function signatureOf(request: UpstreamRequest, keys: AwsKeys, scope: Scope): Promise<Signature> {
  const url = new URL(request.url);
  const signer = await newSigner(keys, scope);
  const given = { ...request.headers, host: url.host };
  const signed = await signer.sign(
    {
      method: request.method ?? 'POST',
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: given,
      body: joinedBody(request.body),
    },
    { signingDate: new Date(scope.clock.now()) },
  );
  const headers: Signature = {};
  for (const [name, value] of Object.entries(signed.headers)) if (!(name in given)) headers[name] = value;
  return headers;
}

async function newSigner(credentials: AwsKeys, { region, service }: Scope): Promise<SignatureV4> {
  const library = await import('@smithy/signature-v4');
  return new library.SignatureV4({
    credentials,
    region,
    service,
    sha256: SigningHash,
    uriEscapePath: service !== 's3',
  });
}

export function regionOf({ options, baseUrl }: Pick<Provider, 'options' | 'baseUrl'>): string {
  return options['region'] ?? regionIn(baseUrl) ?? USUAL_REGION;
}

/** The region in a Bedrock URL. */
function regionIn(baseUrl: string): string | undefined {
  return /^https?:\/\/(?:[\w-]+\.)?bedrock-runtime(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d)\./.exec(baseUrl)?.[1];
}

/**
 * Google sign-in for Vertex AI: access tokens for a service account or for the machine's identity (application default
 * credentials), through Google's own library, which is loaded on the first call.
 */
import type { Clock } from '../../base/clock.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Provider } from '../provider.ts';
import { bearer } from './bearer.ts';
import { type Signer, SignInError, type Token, TokenKeeper } from './sign.ts';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** Hosts from which Google's library requests tokens; `sign_in_url` replaces them. */
const SIGN_IN_HOSTS = /^https:\/\/(oauth2|sts|iamcredentials)\.googleapis\.com(?=\/)/;
/** Limit for one request to the sign-in service. */
const SIGN_IN_TIMEOUT_MS = 10_000;
/** Lifetime of a token whose server reports none. */
const USUAL_LIFE_MS = 3_600_000;

interface Account {
  /** The content of a key file; null: use `keyFile` or the machine's identity. */
  document: string | null;
  keyFile: string | undefined;
  signInUrl: string | undefined;
  project: string | undefined;
}

/** Most credentials with cached tokens. */
const MOST_KEEPERS = 1_000;

/** Bearer tokens, with one keeper per credential. */
export function googleSigner(provider: Provider): Signer {
  const keepers = new Map<string | null, TokenKeeper>();
  const { key_file: keyFile, sign_in_url: signInUrl, project } = provider.options;
  // The machine's identity is only used for Google: any other host needs an explicit credential.
  const nobody = keyFile === undefined && !isGoogle(provider.baseUrl);
  const keeperOf = (document: string | null): TokenKeeper => {
    let keeper = keepers.get(document);
    if (keeper === undefined) {
      keeper = new TokenKeeper((clock) => fetchToken({ document, keyFile, signInUrl, project }, clock));
      // Customers' credentials come and go; an evicted one signs in again.
      if (keepers.size >= MOST_KEEPERS) keepers.delete(keepers.keys().next().value!);
      keepers.set(document, keeper);
    }
    return keeper;
  };
  return {
    sign({ credential, clock }) {
      if (credential === null && nobody) return {};
      const token = keeperOf(credential).token(clock);
      return typeof token === 'string' ? bearer(token) : token.then(bearer);
    },
    refused: (credential) => keepers.get(credential)?.forget(),
  };
}

function isGoogle(baseUrl: string): boolean {
  return /(^|\.)googleapis\.com$/.test(new URL(baseUrl).hostname);
}

async function fetchToken({ document, keyFile, signInUrl, project }: Account, clock: Clock): Promise<Token> {
  const { GoogleAuth, gaxios } = await import('google-auth-library');
  const transporter = new gaxios.Gaxios({ timeout: SIGN_IN_TIMEOUT_MS });
  transporter.interceptors.request.add({
    resolved: async (options) => {
      // Retries are the router's decision: it tries the next endpoint instead of waiting.
      options.retryConfig = { retry: 0, noResponseRetries: 0 };
      if (signInUrl !== undefined) options.url = new URL(options.url.href.replace(SIGN_IN_HOSTS, signInUrl));
      return options;
    },
  });
  const startedAt = clock.now();
  try {
    const auth = new GoogleAuth({
      scopes: [SCOPE],
      // Set explicitly, so that the library need not look it up.
      ...(project !== undefined && { projectId: project }),
      clientOptions: {
        transporter,
        // Workload identity exchange is the only request that bypasses the transporter.
        ...(signInUrl !== undefined && { token_url: `${signInUrl}/v1/token` }),
      },
      ...(document !== null && { credentials: JSON.parse(document) }),
      ...(document === null && keyFile !== undefined && { keyFile }),
    });
    const client = await auth.getClient();
    const { token } = await client.getAccessToken();
    if (!token) throw new Error('the sign-in returned no token');
    const until = client.credentials.expiry_date;
    return { value: token, expiresAt: until ? Math.max(until, startedAt) : startedAt + USUAL_LIFE_MS };
  } catch (cause) {
    throw new SignInError(failureOf(cause));
  }
}

/** The library's errors quote the request, so none of their text is used. */
function failureOf(cause: unknown): UpstreamFailure {
  const { status, response, code } = cause as { status?: unknown; response?: { status?: unknown }; code?: unknown };
  const answered = [response?.status, status].find((one) => typeof one === 'number') as number | undefined;
  if (answered === undefined) {
    const network = typeof code === 'string' && /^E[A-Z]+$|^UND_ERR/.test(code);
    return network
      ? { kind: 'refused', status: null, message: 'the sign-in service of the provider cannot be reached' }
      : { kind: 'auth', status: null, message: 'the credential of the provider cannot be used to sign in' };
  }
  if (answered === 429) return { kind: 'rate_limit', status: answered, message: 'too many sign-ins at the provider' };
  if (answered >= 500) return { kind: 'server', status: answered, message: 'the sign-in at the provider failed' };
  return { kind: 'auth', status: answered, message: 'the sign-in at the provider was refused' };
}

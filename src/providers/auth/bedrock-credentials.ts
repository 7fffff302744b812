/**
 * AWS keys for signing: a document from the configuration, or the standard AWS credential chain (environment, profiles,
 * single sign-on, roles of containers and machines).
 */
import { fieldsOf, textOrUndefined } from '../../formats/conversation/fields.ts';
import { SignInError, TokenKeeper } from './sign.ts';

export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** Whether a credential holds the keys as JSON rather than a bearer token. */
export function isKeyDocument(credential: string): boolean {
  return credential.startsWith('{');
}

/** Throws SignInError for a document that lacks a key. */
export function readKeyDocument(credential: string): AwsKeys {
  let document: Record<string, unknown> = {};
  try {
    document = fieldsOf(JSON.parse(credential));
  } catch {
    // Reported below: the message must not contain any of the text.
  }
  const named = (long: string, short: string) => textOrUndefined(document[long]) ?? textOrUndefined(document[short]);
  const accessKeyId = named('accessKeyId', 'access_key_id');
  const secretAccessKey = named('secretAccessKey', 'secret_access_key');
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    const message = 'the api_key is a document without accessKeyId and secretAccessKey';
    throw new SignInError({ kind: 'auth', status: null, message });
  }
  const sessionToken = named('sessionToken', 'session_token');
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}

/**
 * Caches the chain's keys until shortly before they expire. Nothing is loaded or requested before the first call. The
 * chain is created per fetch, because the vendor's library would otherwise cache keys and files by its own clock.
 */
export function chainKeeper(profile: string | undefined): TokenKeeper<AwsKeys> {
  return new TokenKeeper(async () => {
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
    const found = await defaultProvider({ ignoreCache: true, ...(profile !== undefined && { profile }) })();
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = found;
    return {
      value: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
      expiresAt: expiration?.getTime() ?? Number.POSITIVE_INFINITY,
    };
  });
}

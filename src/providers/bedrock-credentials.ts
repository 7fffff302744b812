/**
 * Where the keys that sign come from: a document that the configuration gives, or the chain that AWS's own tools search
 * (environment, profiles, single sign-on, the roles of containers and machines).
 */
import { fieldsOf, textOrUndefined } from '../formats/conversation/fields.ts';
import { SignInError, TokenKeeper } from './sign.ts';

export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

/** A credential that is the keys themselves, as JSON, and not a bearer token. */
export function isKeyDocument(credential: string): boolean {
  return credential.startsWith('{');
}

/** Throws SignInError for a document that lacks a key. */
export function readKeyDocument(credential: string): AwsKeys {
  let document: Record<string, unknown> = {};
  try {
    document = fieldsOf(JSON.parse(credential));
  } catch {
    // Told below: nothing of the text may stand in a message.
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
 * Keeps what the chain found until shortly before it runs out. Nothing is loaded or asked before the first call. The chain
 * itself is made anew each time: the vendor's library would keep keys, and files, by a clock and a judgement of its own.
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

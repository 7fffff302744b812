/**
 * Where the keys that sign come from: a document that the configuration gives, or the chain that AWS's own tools search
 * (environment, profiles, single sign-on, the roles of containers and machines).
 */
import type { Clock } from '../base/clock.ts';
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

/** Keeps what the chain found until shortly before it runs out. Nothing is loaded or asked before the first call. */
export function chainKeeper(profile: string | undefined): TokenKeeper<AwsKeys> {
  let provide: (() => Promise<AwsKeys & { expiration?: Date }>) | undefined;
  return new TokenKeeper(async (_clock: Clock) => {
    if (provide === undefined) {
      const { fromNodeProviderChain } = await import('@aws-sdk/credential-provider-node').then((library) => ({
        fromNodeProviderChain: library.defaultProvider,
      }));
      provide = fromNodeProviderChain(profile === undefined ? {} : { profile });
    }
    const { expiration, ...keys } = await provide();
    return { value: keys, expiresAt: expiration?.getTime() ?? Number.POSITIVE_INFINITY };
  });
}

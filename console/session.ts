/** Who is signed in. */
import { useQuery } from '@tanstack/preact-query';
import type { ApiConsoleSession } from './api.gen.ts';
import { ApiError, root } from './api.ts';
import { queryClient } from './query.ts';

export type SessionState = ApiConsoleSession['data'] & {
  /** The user signed out, here or in another window. If there is no session without this, it has expired. */
  hasSignedOut?: boolean;
};
export type Session = NonNullable<SessionState['session']>;

const KEY = ['session'];
/** Often enough to notice that the key was disabled. */
const CHECK_MS = 60_000;

export function useSession() {
  return useQuery<SessionState, ApiError>({
    queryKey: KEY,
    queryFn: ({ signal }) => current(signal),
    refetchInterval: CHECK_MS,
    staleTime: CHECK_MS,
  });
}

/** The key was disabled, or its member has left the organization. */
const ENDED = new Set([401, 403]);

async function current(signal: AbortSignal): Promise<SessionState> {
  try {
    return (await root('GET /console/session', { signal })).data;
  } catch (error) {
    if (!(error instanceof ApiError) || !ENDED.has(error.status)) throw error;
    return { version: '', oidc: null, session: null };
  }
}

function keep(data: SessionState): void {
  queryClient.setQueryData(KEY, data);
}

/** Signing out in one window of this console signs out all of them. */
const signedOut = new BroadcastChannel(`signed out of ${location.pathname}`);
signedOut.onmessage = ({ data }) => forget(data as SessionState);

function forget(data: SessionState): void {
  keep({ ...data, hasSignedOut: true });
  // The session itself is observed, so it stays.
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
}

export async function signIn(body: { key: string } | { code: string }): Promise<void> {
  keep((await root('POST /console/session', { body })).data);
  // What was refused because the former session had ended is read again.
  void queryClient.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEY[0] });
}

/** Opens the sign-in page of the identity provider, which sends the browser back. */
export async function signInElsewhere(): Promise<void> {
  const { data } = await root('POST /console/session/oidc');
  location.assign(data.url);
}

export async function signOut(): Promise<void> {
  const { data } = await root('DELETE /console/session');
  forget(data);
  signedOut.postMessage(data);
  if (data.sign_out_url !== undefined) location.assign(data.sign_out_url);
}

/** The key that the console runs models with; null for none. */
export async function chooseInferenceKey(key: string | null): Promise<void> {
  keep((await root('PUT /console/session/inference-key', { body: { key } })).data);
}

/** After a 401: shows the sign-in page if the session has ended. */
export function checkSession(): void {
  void queryClient.invalidateQueries({ queryKey: KEY });
}

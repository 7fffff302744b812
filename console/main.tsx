/** The console: starts it. */
import './style.css';
import { QueryClientProvider } from '@tanstack/preact-query';
import { render } from 'preact';
import { useRef } from 'preact/hooks';
import { Frame } from './frame.tsx';
import { hasEnded, queryClient } from './query.ts';
import { usePlace } from './route.ts';
import { checkSession, type SessionState, useSession } from './session.ts';
import { SignIn, SignInAgain } from './sign-in.tsx';
import { startTheme } from './theme.ts';
import { Problem, Waiting } from './ui/basics.tsx';

function Console() {
  const { data, error, refetch } = useSession();
  const { path } = usePlace();
  const last = useRef<SessionState>();
  if (data === undefined) {
    return <main class="alone">{error ? <Problem error={error} retry={() => void refetch()} /> : <Waiting />}</main>;
  }
  if (data.session !== null || data.hasSignedOut) last.current = data;
  const { version, session } = last.current ?? data;
  if (session === null || path === '/sign-in') return <SignIn state={data} />;
  // A session that has ended leaves the page as it is, so that nothing typed into it is lost.
  return (
    <>
      <Frame key={session.management_key.hash} version={version} session={session} />
      {data.session === null && <SignInAgain state={data} />}
    </>
  );
}

queryClient.getQueryCache().subscribe(({ type, query }) => {
  if (type === 'updated' && query.queryKey[0] !== 'session' && hasEnded(query.state.error)) checkSession();
});
queryClient.getMutationCache().subscribe(({ mutation }) => {
  if (hasEnded(mutation?.state.error)) checkSession();
});

startTheme();
const place = document.getElementById('app');
if (place !== null) {
  render(
    <QueryClientProvider client={queryClient}>
      <Console />
    </QueryClientProvider>,
    place,
  );
}

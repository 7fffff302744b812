/** The console: starts it. */
import './style.css';
import { QueryClientProvider } from '@tanstack/preact-query';
import { render } from 'preact';
import type { ApiError } from './api.ts';
import { Frame } from './frame.tsx';
import { queryClient } from './query.ts';
import { usePlace } from './route.ts';
import { checkSession, useSession } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { startTheme } from './theme.ts';
import { Problem, Waiting } from './ui/basics.tsx';

function Console() {
  const { data, error, refetch } = useSession();
  const { path } = usePlace();
  if (data === undefined) {
    return <main class="alone">{error ? <Problem error={error} retry={() => void refetch()} /> : <Waiting />}</main>;
  }
  if (data.session === null || path === '/sign-in') return <SignIn state={data} />;
  return <Frame version={data.version} session={data.session} />;
}

const ENDED = 401;
const hasEnded = (error: unknown) => (error as ApiError | null)?.status === ENDED;
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

/** Signing in: with a management key, the one-time link of the first start, or at the identity provider. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useChange } from './query.ts';
import { currentPlace, go, link, usePlace } from './route.ts';
import { type SessionState, signIn, signInElsewhere } from './session.ts';
import { Button, Note, Problem, Waiting } from './ui/basics.tsx';
import { Form, Text } from './ui/forms.tsx';
import { Mark } from './ui/mark.tsx';

/** Why the identity provider's answer led to no session. */
const PROBLEMS: Readonly<Record<string, string>> = {
  unverified:
    'Your identity provider did not send the claim that identifies members, or has not verified your e-mail address.',
  not_member: 'You are not a member of the organization of this gateway.',
  not_admin: 'You are a member, but only administrators may use the console.',
  expired: 'Signing in took too long, or began in another browser. Try again.',
  denied: 'You or your identity provider refused the sign-in.',
  failed: 'The answer of your identity provider is not valid. The log of the gateway says why.',
};

/** Over the page of a session that has ended. It cannot be closed without signing in. */
export function SignInAgain({ state }: { state: SessionState }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [title] = useState(document.title);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector('input')?.focus();
    return () => {
      document.title = title;
      queueMicrotask(() => before instanceof HTMLElement && before.focus());
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class="again"
      aria-label="Sign in again"
      onCancel={(event) => event.preventDefault()}
      onClose={(event) => event.currentTarget.showModal()}
    >
      <Note>The session has ended. The page stays as it is until you sign in again.</Note>
      <SignInCard state={state} />
    </dialog>
  );
}

export function SignIn({ state }: { state: SessionState }) {
  return (
    <main class="alone">
      <SignInCard state={state} />
    </main>
  );
}

function SignInCard({ state }: { state: SessionState }) {
  const { params, path } = usePlace();
  const code = path === '/sign-in' ? params.get('code') : null;
  const problem = PROBLEMS[params.get('problem') ?? ''];
  const [key, setKey] = useState('');
  const elsewhere = useChange(signInElsewhere);
  const enter = () => {
    if (currentPlace().path === '/sign-in') go(link('/'), true);
  };
  const change = useChange(signIn, [], enter);
  const used = useRef(false);
  useEffect(() => {
    document.title = 'Sign in · Gatehouse';
    if (code === null) {
      if (state.session !== null) enter();
    } else if (!used.current) {
      used.current = true;
      // The code leaves the address bar and the history before it is used.
      go(link('/sign-in'), true);
      change.mutate({ code });
    }
  }, [code]);
  return (
    <>
      <section class="sign-in">
        <div class="brand">
          <Mark size={36} />
          <h1>Gatehouse</h1>
        </div>
        {problem !== undefined && (
          <div role="alert">
            <Note tone="bad">{problem}</Note>
          </div>
        )}
        {state.oidc !== null && (
          <>
            <Problem error={elsewhere.error} />
            <Button kind="main" busy={elsewhere.isPending} onClick={() => elsewhere.mutate()}>
              Sign in with {state.oidc.name}
            </Button>
            <p class="soft small or">or</p>
          </>
        )}
        {change.isPending && used.current && key === '' ? (
          <Waiting lines={3} />
        ) : (
          <Form submit="Sign in" change={change} value={{ key: key.trim() }}>
            <Text
              label="Management key"
              type="password"
              value={key}
              onInput={setKey}
              required
              maxLength={512}
              placeholder="sk-…-mgmt-v1-…"
              hint="It is sent to this gateway once and not kept in the browser."
            />
          </Form>
        )}
        <p class="soft small">
          The first start shows a management key on its terminal, or writes it to <code>first-keys.txt</code> in the
          data folder. <code>npx gatehouse keys create --management</code> makes another one.
        </p>
        <p class="small">
          <a href="../docs">API reference</a> · <a href="../start">Base URLs and first steps</a>
        </p>
      </section>
      <p class="soft small version">Gatehouse {state.version}</p>
    </>
  );
}

/** The chat with an intern: its answers as they arrive, its questions with buttons, and messages for a turn that runs. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiIntern } from '../api.gen.ts';
import { useParams } from '../route.ts';
import { Badge, Button, Empty, Note } from '../ui/basics.tsx';
import { count } from '../ui/format.ts';
import { Area, Check } from '../ui/forms.tsx';
import { Output } from '../ui/written.tsx';
import { type Entry, openQuestion, type Said } from './conversation.ts';
import { QuestionCard } from './question.tsx';
import { useTalk } from './talk.ts';

const SESSION_BYTES = 16;
const LONGEST_PROMPT = 32_000;

/** Not `randomUUID`, which browsers have for https only. */
function newSession(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SESSION_BYTES));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

export function Chat({ intern }: { intern: ApiIntern }) {
  const { params, set } = useParams();
  const talk = useTalk(intern.id);
  const { entries, isStreaming } = talk;
  const [text, setText] = useState('');
  const [asks, setAsks] = useState(true);
  const [isSending, setSending] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = end.current?.parentElement;
    if (place) place.scrollTop = place.scrollHeight;
  }, [entries]);
  const session = params.get('session');
  const question = openQuestion(entries);
  const isReady = intern.status === 'running' && !isSending && question === undefined && text.trim() !== '';
  const send = async () => {
    if (!isReady) return;
    const id = session ?? newSession();
    if (session === null) set({ session: id }, true);
    setSending(true);
    // What was typed meanwhile stays.
    if (await talk.prompt(id, text, asks)) setText((now) => (now === text ? '' : now));
    setSending(false);
  };
  return (
    <>
      <section class="lane" aria-label={`Chat with ${intern.name}`}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
        <section class="turns" tabIndex={0} aria-label="Conversation">
          {entries.length === 0 && <NothingSaid intern={intern} isContinued={session !== null} />}
          {entries.map((entry, at) =>
            entry.kind === 'question' ? (
              <QuestionCard
                key={at}
                question={entry}
                onAnswer={(answer) => talk.answer(session ?? '', entry, answer)}
              />
            ) : (
              <Spoken key={at} entry={entry} />
            ),
          )}
          <div ref={end} />
        </section>
      </section>
      {talk.problem !== undefined && (
        <div role="alert">
          <Note tone="bad">{talk.problem}</Note>
        </div>
      )}
      <form
        class="composer"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Area
          label="Message"
          value={text}
          maxLength={LONGEST_PROMPT}
          onInput={setText}
          placeholder={
            question !== undefined
              ? 'Answer the question first.'
              : isStreaming
                ? 'Add something to the turn that runs.'
                : 'Give it work. Enter sends, Shift and Enter begin a new line.'
          }
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            void send();
          }}
        />
        <div class="actions spread">
          <Check label="Ask before it uses tools that need consent" checked={asks} onChange={setAsks} />
          <span class="actions">
            {entries.length > 0 && (
              <Button
                kind="quiet"
                onClick={() => {
                  talk.clear();
                  set({ session: undefined }, true);
                }}
              >
                New conversation
              </Button>
            )}
            {isStreaming && (
              <Button icon="stop" onClick={talk.stop}>
                Stop
              </Button>
            )}
            <Button kind="main" icon="send" type="submit" disabled={!isReady}>
              {isStreaming ? 'Add' : 'Send'}
            </Button>
          </span>
        </div>
      </form>
    </>
  );
}

function NothingSaid({ intern, isContinued }: { intern: ApiIntern; isContinued: boolean }) {
  if (intern.status !== 'running') {
    return (
      <Empty icon="interns" title={`The intern is ${intern.status.replaceAll('_', ' ')}`}>
        <p>You can talk to it while it runs.</p>
      </Empty>
    );
  }
  return (
    <Empty icon="interns" title={isContinued ? 'The conversation continues' : 'Nothing said yet'}>
      <p>
        {isContinued
          ? 'The intern remembers what was said; this page does not.'
          : 'Leaving this page while it speaks ends its turn.'}
      </p>
    </Empty>
  );
}

function Spoken({ entry }: { entry: Exclude<Entry, { kind: 'question' }> }) {
  if (entry.kind === 'intern') return <Answer said={entry} />;
  return (
    <div class="turn">
      <div class="said">
        {entry.text}
        {entry.steered && <p class="soft small">Added to the turn that ran</p>}
      </div>
    </div>
  );
}

function Answer({ said: { text, reasoning, state, error, usage, model } }: { said: Said }) {
  const isSilent = text === '' && reasoning === '';
  if (isSilent && state === 'done' && error === undefined && usage === undefined) return null;
  return (
    <div class="turn">
      <div class="answered" aria-busy={state === 'running'}>
        <Output text={text} reasoning={reasoning} />
        {state === 'running' && isSilent && <span class="cursor">Working</span>}
        {state === 'stopped' && <Badge tone="warn">Stopped</Badge>}
        {error !== undefined && <Note tone="bad">{error}</Note>}
        {usage !== undefined && (
          <p class="figures">
            <span>
              {count(usage.prompt_tokens)} → {count(usage.completion_tokens)} tokens
            </span>
            {model !== undefined && <span class="mono">{model}</span>}
          </p>
        )}
      </div>
    </div>
  );
}

/** Talks to an intern: sends prompts and answers, and reads the streams that follow. */
import { useEffect, useReducer, useRef, useState } from 'preact/hooks';
import { request } from '../api.ts';
import { eventsOf } from '../events.ts';
import { hasEnded } from '../query.ts';
import { checkSession } from '../session.ts';
import { added, type Call, type Entry, type Event, type Question, type Usage } from './conversation.ts';

interface Chunk {
  model?: string;
  choices?: { delta?: { content?: string; reasoning?: string; tool_calls?: Call[] }; finish_reason?: string | null }[];
  error?: { message?: string };
  usage?: Usage | null;
}

export interface Talk {
  entries: readonly Entry[];
  /** The intern speaks. A prompt is then added to its turn. */
  isStreaming: boolean;
  /** Why the last message was not accepted. */
  problem: string | undefined;
  /** Resolves with false if the message was not accepted. */
  prompt(session: string, text: string, asks: boolean): Promise<boolean>;
  answer(session: string, question: Question, answer: string): Promise<void>;
  stop(): void;
  clear(): void;
}

const STEERED = 202;

export function useTalk(intern: string): Talk {
  const [entries, add] = useReducer<readonly Entry[], Event | 'clear'>(
    (now, event) => (event === 'clear' ? [] : added(now, event)),
    [],
  );
  const [isStreaming, setStreaming] = useState(false);
  const [problem, setProblem] = useState<string>();
  const running = useRef<AbortController>();
  const stop = () => running.current?.abort();
  useEffect(() => stop, []);

  const send = (body: object, signal: AbortSignal) =>
    request('POST', `../api/v1/interns/${encodeURIComponent(intern)}/chat/completions`, {
      body: { stream: true, ...body },
      signal,
    });

  const refused = (error: unknown) => {
    setProblem(messageOf(error));
    if (hasEnded(error)) checkSession();
  };

  /** @param begun what the response is the answer to */
  async function follow(response: Response, abort: AbortController, begun?: Event): Promise<void> {
    running.current = abort;
    setStreaming(true);
    if (begun) add(begun);
    try {
      await read(response, add);
    } catch (error) {
      const isStopped = (error as Error).name === 'AbortError';
      add({ type: 'ended', state: isStopped ? 'stopped' : 'done', error: isStopped ? undefined : messageOf(error) });
    } finally {
      if (running.current === abort) running.current = undefined;
      setStreaming(running.current !== undefined);
    }
  }

  return {
    entries,
    isStreaming,
    problem,
    stop,
    async prompt(session, text, asks) {
      setProblem(undefined);
      const abort = new AbortController();
      try {
        const response = await send(
          {
            session_id: session,
            approval_mode: asks ? 'manual' : 'self-drive',
            messages: [{ role: 'user', content: text }],
          },
          abort.signal,
        );
        if (response.status === STEERED) add({ type: 'steered', text });
        else void follow(response, abort, { type: 'prompted', text });
        return true;
      } catch (error) {
        refused(error);
        return false;
      }
    },
    async answer(session, { call }, answer) {
      setProblem(undefined);
      const abort = new AbortController();
      try {
        const { id, function: called } = call;
        const messages = [
          { role: 'assistant', content: null, tool_calls: [{ id, function: called }] },
          { role: 'tool', tool_call_id: id, content: answer },
        ];
        const response = await send({ session_id: session, messages }, abort.signal);
        void follow(response, abort, { type: 'answered', call: id, answer });
      } catch (error) {
        refused(error);
      }
    },
    clear() {
      stop();
      setProblem(undefined);
      add('clear');
    },
  };
}

function messageOf(error: unknown): string {
  return (error as Error).message;
}

/** Texts are handed on at most once a frame. */
async function read(response: Response, add: (event: Event) => void): Promise<void> {
  let text = '';
  let reasoning = '';
  let model: string | undefined;
  let frame = 0;
  const flush = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    if (text !== '' || reasoning !== '') add({ type: 'said', text, reasoning, model });
    text = '';
    reasoning = '';
  };
  let usage: Usage | undefined;
  let error: string | undefined;
  let call: Call | undefined;
  try {
    for await (const event of eventsOf(response)) {
      const chunk = event as Chunk;
      const [choice] = chunk.choices ?? [];
      text += choice?.delta?.content ?? '';
      reasoning += choice?.delta?.reasoning ?? '';
      model = chunk.model ?? model;
      call ??= choice?.delta?.tool_calls?.[0];
      usage = chunk.usage ?? usage;
      if (choice?.finish_reason === 'error') error = chunk.error?.message ?? 'The turn failed.';
      frame ||= requestAnimationFrame(flush);
    }
  } finally {
    flush();
  }
  if (call !== undefined) add({ type: 'asked', call });
  else add({ type: 'ended', state: 'done', error, usage });
}

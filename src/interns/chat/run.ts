/** One turn of an agent, and at most one reader of its output. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { GatewayError } from '../../base/errors.ts';
import {
  type AgentAnswer,
  AgentGone,
  type AgentPrompt,
  type AgentQuestion,
  type AgentSession,
  type AgentUsage,
  type TurnEnd,
} from '../agents/index.ts';
import { internError, type Reason } from '../errors.ts';
import type { RunMeter, RunUsage } from '../work/model-calls.ts';
import { readAnswer } from './answers.ts';
import { RUN_TABLE, type RunEvent, type RunState } from './run-states.ts';

/** How a run ended. `error` null: the turn is complete. */
export interface RunEnding {
  readonly error: GatewayError | null;
  /** Follows within seconds; null: the intern reported none. Never rejects. */
  readonly usage: Promise<RunUsage | null>;
}

export type TextPart = 'content' | 'reasoning';

/** The output that a reader gets, in order. A question or the end is the last of it. */
export type RunOutput =
  | { readonly type: 'text'; readonly part: TextPart; readonly text: string; readonly model: string | null }
  | { readonly type: 'question'; readonly id: string; readonly question: AgentQuestion; readonly model: string | null }
  | { readonly type: 'end'; readonly ending: RunEnding; readonly model: string | null };

export interface RunReader {
  /** Returns false to get nothing more until `Run.drained`. */
  take(output: RunOutput): boolean;
}

interface RunParts {
  clock: Clock;
  session: AgentSession;
  prompt: AgentPrompt;
  meter: RunMeter;
  /** The run has no reader: permissions are given, other questions declined, output is not kept. */
  unattended: boolean;
  /** A question has its id now. */
  asked(id: string): void;
  /** The agent did not confirm that the turn is over, so its process has to end. */
  stuck(): void;
  /** @param text what the agent said in it */
  over(ending: RunEnding, text: string): void;
}

const QUESTION_MS = 300_000;
/** Of a whole run. */
const RUN_MS = 3_600_000;
/** How long an agent may take to confirm that it has cancelled a turn. */
const CONFIRM_MS = 10_000;
/** Characters that are kept for a reader which is slow, or has not attached yet. */
const MOST_KEPT = 256 * 1024;
/** Counted for each output that is kept. */
const OUTPUT_OVERHEAD = 64;
/** Questions that wait for the one before. */
const MOST_QUESTIONS = 16;
/** Of what the agent says, for the log of the session. */
const LOGGED_CHARACTERS = 32_000;

interface Pending {
  readonly id: string;
  readonly question: AgentQuestion;
  reply(answer: AgentAnswer): void;
}

export class Run {
  readonly #parts: RunParts;
  readonly #questions: Pending[] = [];
  #state: RunState = 'streaming';
  #model: string | null = null;
  #reader: RunReader | undefined;
  #isBlocked = false;
  #kept: RunOutput[] = [];
  #keptCharacters = 0;
  #text = '';
  #hasSpoken = false;
  /** Why the turn is being cancelled. */
  #cause: GatewayError | undefined;
  #questionTimer: Timer | undefined;
  #confirmTimer: Timer | undefined;
  readonly #timer: Timer;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const message = `The run took longer than ${RUN_MS / 60_000} minutes.`;
    this.#timer = parts.clock.timer(RUN_MS, () => this.#cancel('late', 'run_ended', message));
  }

  get state(): RunState {
    return this.#state;
  }

  /** Sends the prompt. */
  begin(): void {
    const { session, prompt } = this.#parts;
    const events = {
      content: (text: string) => this.#said('content', text),
      reasoning: (text: string) => this.#said('reasoning', text),
      model: (name: string) => {
        this.#model = name;
      },
      question: (question: AgentQuestion, reply: (answer: AgentAnswer) => void) => this.#asked(question, reply),
    };
    session.prompt(prompt, events).then(
      (end) => this.#turnEnded(end),
      (error: unknown) => {
        if (error instanceof AgentGone) this.#ended('gone', severed(error.limit), null);
        else this.#turnEnded({ outcome: 'failed', message: (error as Error).message, usage: null });
      },
    );
  }

  /** @throws GatewayError 409 if it has a reader */
  attach(reader: RunReader): void {
    this.#checkAttachable();
    this.#reader = reader;
    this.#isBlocked = false;
    this.#flush();
  }

  drained(reader: RunReader): void {
    if (reader !== this.#reader) return;
    this.#isBlocked = false;
    this.#flush();
  }

  /** The reader has disconnected. A run that streams is cancelled. */
  leave(reader: RunReader, reason: 'client_closed_request' | 'timeout'): void {
    if (reader !== this.#reader) return;
    this.#reader = undefined;
    const message = reason === 'timeout' ? 'The response took too long.' : 'The client closed the connection.';
    this.#cancel('left', reason, message);
  }

  /** Answers the pending question. @throws GatewayError 400 if it is no answer, and 409 if nothing is asked */
  answer(id: string, text: string, reader: RunReader): void {
    const [pending] = this.#questions;
    if (this.#state !== 'paused' || pending?.id !== id) throw this.#whyNotPending();
    const answer = readAnswer(pending.question, text);
    this.#checkAttachable();
    this.#questions.shift();
    this.#questionTimer?.cancel();
    this.#happens('answered');
    this.attach(reader);
    pending.reply(answer);
    if (pending.question.kind === 'permission' && answer.action === 'cancel') {
      this.#cancel('stopped', 'run_ended', 'The run was cancelled by the answer to its question.');
    } else if (this.#questions.length > 0) this.#pause();
  }

  /** @throws GatewayError 409 if the agent cannot take it now */
  async steer(text: string): Promise<void> {
    if (this.#state === 'streaming' && (await this.#parts.session.steer(text))) return;
    const what = this.#state === 'paused' ? 'waits for an answer' : 'already runs a turn';
    throw internError('busy', `The session ${what}.`, { status: 409 });
  }

  /** The intern is stopped. */
  stop(): void {
    this.#cancel('stopped', 'run_ended', 'The intern was stopped.');
  }

  #checkAttachable(): void {
    if (this.#reader === undefined) return;
    throw internError('attachment_failed', 'Another request reads this run.', { status: 409 });
  }

  #whyNotPending(): GatewayError {
    const isLost = this.#cause?.details.metadata?.['reason'] === 'attachment_failed';
    return isLost ? this.#cause! : internError('interaction_not_pending', 'The question is no longer pending.');
  }

  #happens(event: RunEvent): boolean {
    const step = RUN_TABLE[this.#state][event];
    if (step === 'same' || step === 'refused') return false;
    this.#state = step;
    return true;
  }

  #said(part: TextPart, text: string): void {
    if (text === '' || this.#state === 'cancelling' || this.#state === 'ended') return;
    this.#hasSpoken = true;
    if (part === 'content' && this.#text.length < LOGGED_CHARACTERS) {
      this.#text += text.slice(0, LOGGED_CHARACTERS - this.#text.length);
    }
    this.#put({ type: 'text', part, text, model: this.#model });
  }

  #asked(question: AgentQuestion, reply: (answer: AgentAnswer) => void): void {
    const { unattended, prompt, asked } = this.#parts;
    this.#hasSpoken = true;
    const isOver = this.#state === 'cancelling' || this.#state === 'ended';
    const isTooMuch = isOver || this.#questions.length >= MOST_QUESTIONS;
    const given = prompt.mode === 'self-drive' ? consentOf(question) : undefined;
    const own = isTooMuch ? CANCEL : (given ?? (unattended ? declining(question) : undefined));
    if (own !== undefined) {
      reply(own);
      return;
    }
    const id = `call_${crypto.randomUUID().replaceAll('-', '')}`;
    this.#questions.push({ id, question, reply });
    asked(id);
    if (this.#state === 'streaming') this.#pause();
  }

  #pause(): void {
    this.#happens('asked');
    const { id, question } = this.#questions[0]!;
    this.#put({ type: 'question', id, question, model: this.#model });
    const message = `The question was not answered within ${QUESTION_MS / 60_000} minutes.`;
    this.#questionTimer = this.#parts.clock.timer(QUESTION_MS, () => this.#cancel('late', 'run_ended', message));
  }

  #cancel(event: RunEvent, reason: Reason, message: string): void {
    if (!this.#happens(event)) return;
    this.#cause = internError(reason, message, { status: 410 });
    this.#dropQuestions();
    this.#confirmTimer = this.#parts.clock.timer(CONFIRM_MS, () => {
      if (this.#state !== 'cancelling') return;
      this.#parts.stuck();
      this.#ended('unconfirmed', severed(), null);
    });
    this.#parts.session.cancel();
  }

  #turnEnded({ outcome, message, usage }: TurnEnd): void {
    if (outcome === 'cancelled') this.#ended('cancelled', ended('The intern cancelled the run.'), usage);
    else if (outcome === 'complete') this.#ended('completed', null, usage);
    else this.#ended('failed', this.#failure(message ?? 'The intern gave up.'), usage);
  }

  /** A run that fails before the agent has written anything counts as not run. */
  #failure(message: string): GatewayError {
    return this.#hasSpoken ? ended(message) : internError('turn_failed', message);
  }

  #ended(event: RunEvent, error: GatewayError | null, usage: AgentUsage | null): void {
    const wasStopped = this.#cause !== undefined && event !== 'unconfirmed';
    if (!this.#happens(event)) return;
    this.#timer.cancel();
    this.#confirmTimer?.cancel();
    this.#dropQuestions();
    const ending = { error: wasStopped ? this.#cause! : error, usage: this.#parts.meter.usage(usage) };
    this.#put({ type: 'end', ending, model: this.#model });
    this.#parts.over(ending, this.#text);
  }

  #dropQuestions(): void {
    this.#questionTimer?.cancel();
    for (const { reply } of this.#questions.splice(0)) reply({ action: 'cancel' });
  }

  #put(output: RunOutput): void {
    if (this.#parts.unattended) return;
    const last = this.#kept.at(-1);
    if (last?.type === 'text' && output.type === 'text' && last.part === output.part && last.model === output.model) {
      this.#kept[this.#kept.length - 1] = { ...last, text: last.text + output.text };
    } else this.#kept.push(output);
    this.#keptCharacters += OUTPUT_OVERHEAD + (output.type === 'text' ? output.text.length : 0);
    this.#flush();
    if (this.#keptCharacters <= MOST_KEPT) return;
    this.#kept = this.#kept.filter(({ type }) => type === 'end');
    this.#keptCharacters = 0;
    const message = `The run produced more output than the ${MOST_KEPT / 1024} KiB that are kept for its reader.`;
    this.#cancel('overflowed', 'attachment_failed', message);
  }

  #flush(): void {
    while (this.#reader !== undefined && !this.#isBlocked) {
      const output = this.#kept.shift();
      if (output === undefined) {
        this.#keptCharacters = 0;
        return;
      }
      const reader = this.#reader;
      // Before the reader gets it: an answer may follow at once.
      if (output.type !== 'text') this.#reader = undefined;
      if (!reader.take(output)) this.#isBlocked = true;
    }
  }
}

const CANCEL: AgentAnswer = { action: 'cancel' };

function declining({ kind }: AgentQuestion): AgentAnswer {
  return kind === 'permission' ? CANCEL : { action: 'decline' };
}

/** Undefined for a question that consent does not answer. */
function consentOf(question: AgentQuestion): AgentAnswer | undefined {
  if (question.kind !== 'permission') return undefined;
  const { options } = question;
  const option = options.find((each) => each === 'allow_once') ?? options.find((each) => each === 'allow_always');
  return option && { action: 'option', option };
}

function ended(message: string): GatewayError {
  return internError('run_ended', message);
}

const LIMITS = {
  disk: ': its disk is full. It starts again with the next prompt, and can write a little more to remove something.',
  memory: ': it needed more memory than it has.',
} as const;

function severed(limit: AgentGone['limit'] = null): GatewayError {
  return internError('stream_severed', `The connection to the intern broke${limit === null ? '.' : LIMITS[limit]}`);
}

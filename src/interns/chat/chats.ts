/** The runs of one process: starts them, finds those that an answer or a message belongs to, and connects them to responses. */
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Namespace } from '../../base/namespace.ts';
import type { Database } from '../../storage/database.ts';
import { AgentGone, type AgentPrompt, AgentRefused } from '../agents/index.ts';
import { internError } from '../errors.ts';
import type { Intern } from '../intern.ts';
import type { Agent } from '../work/agent-host.ts';
import type { ChatSink } from './chunks.ts';
import type { ChatRequest } from './request.ts';
import { ChatResponse } from './response.ts';
import { Run } from './run.ts';
import type { InvokedReply } from './schema.ts';
import { logEntry, openSession } from './sessions.ts';

interface ChatParts {
  database: Pick<Database, 'query' | 'transaction'>;
  clock: Clock;
  log: Log;
  namespace: Namespace;
  /** The agent of a running intern; it is started if it does not run. @throws GatewayError, AgentGone, AgentRefused */
  agentOf(intern: Intern): Promise<Agent>;
  /** Ends an agent that does not respond. */
  endAgent(internId: string): void;
}

/** In this process. */
const MOST_RUNS = 256;
/** Of one intern. */
const MOST_RUNS_OF_INTERN = 16;
/** Of one intern, in each minute. */
const MOST_REQUESTS = 240;
const MINUTE_MS = 60_000;
/** Questions that answers may name, also after their end. */
const MOST_QUESTIONS = 4_096;

/** Precedes the prompt of an intern whose disk is full. */
const FULL_NOTE =
  '(Note from the gateway: your disk is full. You can write only a little more. First remove files that you do not need.)';

/** Something that runs in a session, or is about to. */
type Occupied = Run | 'opening';

interface Asked {
  readonly internId: string;
  readonly sessionId: string;
  readonly run: Run;
}

export class Chats {
  readonly #parts: ChatParts;
  /** By intern, then by session. */
  readonly #runs = new Map<string, Map<string, Occupied>>();
  readonly #questions = new Map<string, Asked>();
  readonly #requests = new Map<string, { since: number; count: number }>();
  #count = 0;

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  /**
   * Responds to a request. Rejects with a GatewayError if there is no response yet.
   * @param caller who begins a session
   */
  async respond(intern: Intern, request: ChatRequest, caller: string, sink: ChatSink): Promise<void> {
    this.#checkRate(intern.id);
    const response = new ChatResponse(this.#parts, sink);
    try {
      if (request.kind === 'answer') {
        const { run, sessionId } = this.#asked(intern.id, request);
        return response.answer(run, sessionId, request);
      }
      const prompt = { text: request.text, mode: request.mode };
      const sessionId = request.sessionId ?? crypto.randomUUID();
      const begun = await response.inTime(this.#prompt(intern, sessionId, prompt, caller, response));
      if (begun.status === 'steered') sink.reply(202, begun);
    } catch (error) {
      response.dispose();
      throw error;
    }
  }

  /** Runs a prompt without a client. */
  invoke(intern: Intern, sessionId: string | null, text: string, caller: string): Promise<InvokedReply> {
    this.#checkRate(intern.id);
    return this.#prompt(intern, sessionId ?? crypto.randomUUID(), { text, mode: 'self-drive' }, caller, undefined);
  }

  /** The intern is stopped: its runs end. */
  stop(internId: string): void {
    for (const run of this.#runs.get(internId)?.values() ?? []) if (run !== 'opening') run.stop();
  }

  async #prompt(
    intern: Intern,
    sessionId: string,
    prompt: AgentPrompt,
    caller: string,
    response: ChatResponse | undefined,
  ): Promise<InvokedReply> {
    const running = this.#runs.get(intern.id)?.get(sessionId);
    if (running === 'opening') throw internError('busy', 'The session already begins a turn.', { status: 409 });
    if (running !== undefined) {
      await running.steer(prompt.text);
      return { session_id: sessionId, status: 'steered' };
    }
    this.#occupy(intern.id, sessionId);
    try {
      const run = await this.#opened(intern, sessionId, prompt, caller, response);
      this.#runs.get(intern.id)?.set(sessionId, run);
      response?.read(run, sessionId);
      run.begin();
    } catch (error) {
      this.#release(intern.id, sessionId);
      throw presented(error);
    }
    return { session_id: sessionId, status: 'started' };
  }

  async #opened(
    intern: Intern,
    sessionId: string,
    prompt: AgentPrompt,
    caller: string,
    response: ChatResponse | undefined,
  ): Promise<Run> {
    const { clock, agentOf, endAgent } = this.#parts;
    const name = { internId: intern.id, sessionId };
    const { connection, calls, sandbox } = await agentOf(intern);
    const session = await openSession(this.#parts, connection, name, caller);
    await logEntry(this.#parts, name, { role: 'user', text: prompt.text });
    if (response?.isOver) throw internError('client_closed_request', 'The client closed the connection.');
    const meter = await calls.meter(session.id);
    const told = sandbox.isFull ? { ...prompt, text: `${FULL_NOTE}\n\n${prompt.text}` } : prompt;
    const run: Run = new Run({
      ...{ clock, session, prompt: told, meter, unattended: response === undefined },
      asked: (id) => this.#remember(id, { ...name, run }),
      stuck: () => endAgent(intern.id),
      over: (_, text) => {
        this.#release(intern.id, sessionId);
        logEntry(this.#parts, name, { role: 'assistant', text }).catch((error: unknown) => {
          this.#parts.log.warn('the log of a session cannot be written', { intern: intern.id, error });
        });
      },
    });
    return run;
  }

  #occupy(internId: string, sessionId: string): void {
    const runs = this.#runs.get(internId) ?? new Map<string, Occupied>();
    if (runs.size >= MOST_RUNS_OF_INTERN || this.#count >= MOST_RUNS) {
      throw internError('busy', 'The intern cannot hold another run open. Retry later.');
    }
    this.#runs.set(internId, runs.set(sessionId, 'opening'));
    this.#count += 1;
  }

  #release(internId: string, sessionId: string): void {
    const runs = this.#runs.get(internId);
    if (!runs?.delete(sessionId)) return;
    this.#count -= 1;
    if (runs.size === 0) this.#runs.delete(internId);
  }

  #remember(id: string, asked: Asked): void {
    this.#questions.set(id, asked);
    for (const [oldest] of this.#questions) {
      if (this.#questions.size <= MOST_QUESTIONS) break;
      this.#questions.delete(oldest);
    }
  }

  /** @throws GatewayError 404 */
  #asked(internId: string, { callId, sessionId }: Extract<ChatRequest, { kind: 'answer' }>): Asked {
    const asked = this.#questions.get(callId);
    if (asked?.internId === internId && asked.sessionId === sessionId) return asked;
    throw internError('interaction_unknown', 'No run of this session has asked with this tool_call_id.');
  }

  /** @throws GatewayError 429 */
  #checkRate(internId: string): void {
    const now = this.#parts.clock.monotonic();
    const known = this.#requests.get(internId);
    const window = known !== undefined && now - known.since < MINUTE_MS ? known : { since: now, count: 0 };
    if (known === undefined) this.#forgetRates(now);
    this.#requests.set(internId, window);
    window.count += 1;
    if (window.count <= MOST_REQUESTS) return;
    const retryAfterSeconds = (window.since + MINUTE_MS - now) / 1_000;
    throw internError('rate_limited', `An intern takes at most ${MOST_REQUESTS} chat requests a minute.`, {
      retryAfterSeconds,
    });
  }

  #forgetRates(now: number): void {
    for (const [id, { since }] of this.#requests) if (now - since >= MINUTE_MS) this.#requests.delete(id);
  }
}

function presented(error: unknown): unknown {
  if (error instanceof GatewayError) return error;
  if (error instanceof AgentGone)
    return internError('intern_unreachable', 'The intern cannot be reached.', { cause: error });
  if (error instanceof AgentRefused) return internError('intern_rejected', `The intern refused: ${error.message}`);
  return error;
}

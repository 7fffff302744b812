/** An agent for tests, which does what the test says. */
import {
  type AgentAnswer,
  type AgentConnection,
  type AgentEvents,
  AgentGone,
  type AgentProfile,
  type AgentPrompt,
  type AgentQuestion,
  AgentRefused,
  type AgentSession,
  type AgentUsage,
  type SessionEntry,
  type TurnEnd,
} from '../../interns/agents/index.ts';
import { until } from '../clock/clock.ts';

type AgentSettings = Parameters<AgentProfile['command']>[0];

/** One prompt that the agent works on. */
export class ScriptedTurn {
  readonly prompt: AgentPrompt;
  readonly session: ScriptedSession;
  readonly steered: string[] = [];
  /** It was asked to end. */
  isCancelled = false;
  isOver = false;
  readonly #events: AgentEvents;
  readonly #end = Promise.withResolvers<TurnEnd>();

  constructor(session: ScriptedSession, prompt: AgentPrompt, events: AgentEvents) {
    this.session = session;
    this.prompt = prompt;
    this.#events = events;
  }

  get ended(): Promise<TurnEnd> {
    return this.#end.promise;
  }

  model(name: string): void {
    this.#events.model(name);
  }

  say(text: string): void {
    this.#events.content(text);
  }

  think(text: string): void {
    this.#events.reasoning(text);
  }

  ask(question: AgentQuestion): Promise<AgentAnswer> {
    return new Promise((resolve) => this.#events.question(question, resolve));
  }

  complete(usage: AgentUsage | null = null): void {
    this.#finish({ outcome: 'complete', usage });
  }

  fail(message: string): void {
    this.#finish({ outcome: 'failed', message, usage: null });
  }

  confirmCancel(): void {
    this.#finish({ outcome: 'cancelled', usage: null });
  }

  sever(): void {
    this.isOver = true;
    this.#end.reject(new AgentGone('the agent ended'));
  }

  #finish(end: TurnEnd): void {
    this.isOver = true;
    this.#end.resolve(end);
  }
}

export class ScriptedSession implements AgentSession {
  readonly id: string;
  /** What it was opened with. */
  readonly known: string | null;
  readonly log: readonly SessionEntry[];
  readonly connection: ScriptedConnection;
  readonly #agent: ScriptedAgent;
  turn: ScriptedTurn | undefined;

  constructor(
    agent: ScriptedAgent,
    connection: ScriptedConnection,
    known: string | null,
    log: readonly SessionEntry[],
  ) {
    this.#agent = agent;
    this.connection = connection;
    this.known = known;
    this.log = log;
    this.id = known ?? `session-${agent.sessions.length + 1}`;
  }

  prompt(prompt: AgentPrompt, events: AgentEvents): Promise<TurnEnd> {
    if (this.turn !== undefined && !this.turn.isOver) return Promise.reject(new AgentRefused('a turn runs already'));
    const turn = new ScriptedTurn(this, prompt, events);
    this.turn = turn;
    this.#agent.turns.push(turn);
    if (this.connection.isClosed) turn.sever();
    return turn.ended;
  }

  async steer(text: string): Promise<boolean> {
    if (!this.#agent.canSteer || this.turn === undefined || this.turn.isOver) return false;
    this.turn.steered.push(text);
    return true;
  }

  cancel(): void {
    if (this.turn === undefined) return;
    this.turn.isCancelled = true;
    if (this.#agent.confirmsCancel) this.turn.confirmCancel();
  }
}

export class ScriptedConnection implements AgentConnection {
  readonly settings: AgentSettings;
  isClosed = false;
  readonly #agent: ScriptedAgent;
  readonly #gone = Promise.withResolvers<void>();
  readonly sessions: ScriptedSession[] = [];

  constructor(agent: ScriptedAgent, settings: AgentSettings) {
    this.#agent = agent;
    this.settings = settings;
  }

  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  async openSession(known: string | null, log: readonly SessionEntry[]): Promise<AgentSession> {
    this.#agent.opens += 1;
    await this.#agent.opening;
    if (this.#agent.refusal !== undefined) throw new AgentRefused(this.#agent.refusal);
    if (this.isClosed) throw new AgentGone('the agent ended');
    const session = new ScriptedSession(this.#agent, this, known, log);
    this.sessions.push(session);
    this.#agent.sessions.push(session);
    return session;
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const { turn } of this.sessions) if (turn !== undefined && !turn.isOver) turn.sever();
    this.#gone.resolve();
  }
}

export class ScriptedAgent {
  readonly connections: ScriptedConnection[] = [];
  readonly sessions: ScriptedSession[] = [];
  readonly turns: ScriptedTurn[] = [];
  canSteer = true;
  confirmsCancel = true;
  /** Why it opens no session. */
  refusal: string | undefined;
  /** Sessions open when it resolves. */
  opening: Promise<void> = Promise.resolve();
  /** How often it was asked to open one. */
  opens = 0;
  /** Why it does not start. */
  startFault: Error | undefined;
  /** It greets when this resolves. */
  greeting: Promise<void> = Promise.resolve();
  #seen = 0;

  /** For `AppOptions.agent`. */
  get profile(): AgentProfile {
    let settings: AgentSettings;
    return {
      name: 'scripted',
      command: (given) => {
        settings = given;
        return { argv: ['agent'], environment: {}, programs: [], files: {} };
      },
      connect: async ({ exited }) => {
        await this.greeting;
        if (this.startFault !== undefined) throw this.startFault;
        const connection = new ScriptedConnection(this, settings);
        this.connections.push(connection);
        void exited.then(() => connection.close());
        return connection;
      },
    };
  }

  /** The next prompt that it gets. */
  async nextTurn(): Promise<ScriptedTurn> {
    const at = this.#seen++;
    return until(() => this.turns[at], 'the agent has a prompt');
  }
}

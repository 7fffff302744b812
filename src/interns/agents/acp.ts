/**
 * Agents over the Agent Client Protocol (version 1) on standard input and output. Every agent that speaks it can be an intern;
 * where agents differ, their profile says how.
 */
import { Readable, Writable } from 'node:stream';
import type { ClientConnection } from '@agentclientprotocol/sdk/unstable';
import { type Clock, waitAtMost } from '../../base/clock.ts';
import { CHECKED_UPDATE, onlyExpected, readUpdate } from './acp-messages.ts';
import { AcpSession } from './acp-session.ts';
import {
  type AgentConnection,
  AgentGone,
  AgentRefused,
  type AgentSession,
  type AgentStdio,
  type ApprovalMode,
  type SessionEntry,
} from './connection.ts';

/** Imported when the first agent is connected: it costs 60 MB that few installations need. */
const loadProtocol = () => import('@agentclientprotocol/sdk/unstable');
type Protocol = Awaited<ReturnType<typeof loadProtocol>>;

export interface AcpOptions {
  /** Absolute path in the sandbox. */
  readonly workspace: string;
  /**
   * The agent's own names of the modes. Without one, the mode is not sent to the agent, and the gateway gives consent.
   */
  readonly modes: Readonly<Partial<Record<ApprovalMode, string>>>;
  /** `request`: `_session/steering`, if the agent offers it. `prompt`: a second prompt joins the turn that runs. */
  readonly steering: 'request' | 'prompt';
  readonly clock: Clock;
}

/** For starting an agent and for opening a session. Prompts have no limit here. */
const GREETING_TIMEOUT_MS = 60_000;
/** How long to wait for the end of a process whose connection is closed. */
const EXIT_MS = 500;
/** One line of JSON. Longer ones break the connection. */
const LONGEST_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Of the log that an agent without `session/load` gets, the latest characters. */
const LONGEST_LOG = 100_000;

/** Does the handshake with the agent. Rejects with AgentGone, or AgentRefused. */
export async function connectOverAcp(stdio: AgentStdio, options: AcpOptions): Promise<AgentConnection> {
  const protocol = await loadProtocol();
  const sessions = new Map<string, AcpSession>();
  const { session: client, elicitation } = protocol.methods.client;
  const app = protocol
    .client({ name: 'gatehouse' })
    .onNotification(CHECKED_UPDATE, readUpdate, ({ params }) => {
      if (params !== null) sessions.get(params.sessionId)?.update(params.update);
    })
    .onRequest(client.requestPermission, ({ params, signal }) => {
      const session = sessions.get(params.sessionId);
      return session === undefined ? { outcome: { outcome: 'cancelled' } } : session.askPermission(params, signal);
    })
    .onRequest(elicitation.create, ({ params, signal }) => {
      const id = 'sessionId' in params ? String(params.sessionId) : '';
      return sessions.get(id)?.elicit(params, signal) ?? { action: 'cancel' };
    });
  const input = Readable.toWeb(stdio.stdout) as ReadableStream<Uint8Array>;
  const output = Writable.toWeb(stdio.stdin) as WritableStream<Uint8Array>;
  const connection = app.connect(
    onlyExpected(protocol.ndJsonStream(output, input, { maxMessageBytes: LONGEST_MESSAGE_BYTES })),
  );
  // A process can be gone while its pipes are still held open by a child of it.
  void stdio.exited.then(() => connection.close());
  const connected = new AcpConnection(protocol, connection, { sessions, exited: stdio.exited }, options);
  await connected.greet();
  return connected;
}

class AcpConnection implements AgentConnection {
  readonly gone: Promise<void>;
  readonly #protocol: Protocol;
  readonly #connection: ClientConnection;
  readonly #sessions: Map<string, AcpSession>;
  readonly #exited: Promise<unknown>;
  readonly #options: AcpOptions;
  #canLoad = false;
  #canSteer = false;

  constructor(
    protocol: Protocol,
    connection: ClientConnection,
    { sessions, exited }: { sessions: Map<string, AcpSession>; exited: Promise<unknown> },
    options: AcpOptions,
  ) {
    this.#exited = exited;
    this.#protocol = protocol;
    this.#connection = connection;
    this.#sessions = sessions;
    this.#options = options;
    this.gone = connection.closed.catch(() => {});
  }

  async greet(): Promise<void> {
    const { methods, PROTOCOL_VERSION } = this.#protocol;
    const greeting = this.#connection.agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'gatehouse', version: '1' },
      clientCapabilities: { elicitation: { form: {} } },
    });
    const response = await this.#answered(greeting);
    const { protocolVersion, agentCapabilities } = response;
    if (protocolVersion !== PROTOCOL_VERSION) {
      this.close();
      throw new AgentRefused(`the agent speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`);
    }
    this.#canLoad = agentCapabilities?.loadSession ?? false;
    const steering = response._meta?.['steering'] as { supported?: boolean } | undefined;
    this.#canSteer = this.#options.steering === 'prompt' || steering?.supported === true;
  }

  async openSession(known: string | null, log: readonly SessionEntry[]): Promise<AgentSession> {
    const open = known === null ? undefined : this.#sessions.get(known);
    if (open !== undefined) return open;
    if (known !== null && this.#canLoad && (await this.#load(known))) return this.#opened(known, '');
    const { session } = this.#protocol.methods.agent;
    const asking = this.#connection.agent.request(session.new, { cwd: this.#options.workspace, mcpServers: [] });
    const { sessionId } = await this.#answered(asking);
    return this.#opened(sessionId, logText(log));
  }

  close(): void {
    this.#connection.close();
  }

  /** False if the agent does not know the session. Its history comes as updates, which no prompt listens to. */
  async #load(sessionId: string): Promise<boolean> {
    const { session } = this.#protocol.methods.agent;
    const asked = { sessionId, cwd: this.#options.workspace, mcpServers: [] };
    try {
      await this.#answered(this.#connection.agent.request(session.load, asked));
      return true;
    } catch (error) {
      if (error instanceof AgentGone) throw error;
      return false;
    }
  }

  #opened(sessionId: string, log: string): AcpSession {
    const { modes, steering } = this.#options;
    const session = new AcpSession(sessionId, log, {
      methods: this.#protocol.methods,
      agent: this.#connection.agent,
      modes,
      steering: this.#canSteer ? steering : null,
      answered: (work) => this.#reached(work),
    });
    this.#sessions.set(sessionId, session);
    return session;
  }

  /** Why its process ended. This may be known a moment after the connection has ended. */
  async #limit(): Promise<AgentGone['limit']> {
    let limit: AgentGone['limit'] = null;
    const known = this.#exited.then((ending) => {
      limit = limitOf(ending);
    });
    await waitAtMost(this.#options.clock, EXIT_MS, known);
    return limit;
  }

  /** Within the time limit of the handshake. */
  async #answered<T>(work: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = this.#options.clock.timer(GREETING_TIMEOUT_MS, () => {
      late.reject(new AgentRefused(`the agent did not answer within ${GREETING_TIMEOUT_MS / 1_000} s`));
    });
    try {
      return await Promise.race([this.#reached(work), late.promise]);
    } finally {
      timer.cancel();
    }
  }

  /** Rejects with AgentGone if the connection ends first, and with AgentRefused for the agent's own errors. */
  async #reached<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (this.#connection.signal.aborted)
        throw new AgentGone('the agent ended', await this.#limit(), { cause: error });
      throw new AgentRefused((error as Error).message, { cause: error });
    }
  }
}

function limitOf(ending: unknown): AgentGone['limit'] {
  const { reason } = (ending ?? {}) as { reason?: unknown };
  return reason === 'disk' || reason === 'memory' ? reason : null;
}

/** The latest part of an earlier conversation, for an agent that begins without it. */
function logText(log: readonly SessionEntry[]): string {
  if (log.length === 0) return '';
  const lines = log.map(({ role, text }) => `${role === 'user' ? 'Person' : 'You'}: ${text}`).join('\n\n');
  return `Your conversation so far, from before a restart:\n\n${lines.slice(-LONGEST_LOG)}\n\nIt continues now.\n\n`;
}

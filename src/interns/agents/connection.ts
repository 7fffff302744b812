/**
 * What a run needs of an agent: the seam between the chat stream of an intern (`chat/`) and the program in its sandbox. One
 * connection for each running intern. The implementation over the Agent Client Protocol is next to this file.
 */
import type { Readable, Writable } from 'node:stream';

/** Settings that take effect when the agent starts. */
export interface AgentSettings {
  /** The instructions of the intern. */
  readonly instructions: string | null;
  /** `author/slug`. Null: the gateway chooses the workspace's default model. */
  readonly model: string | null;
}

/** A program of the gateway's machine that the sandbox sees at `/opt/NAME`, read-only. */
interface AgentProgram {
  readonly name: string;
  readonly path: string;
}

/**
 * The program that is started in the sandbox. Its model calls go to `http://127.0.0.1:3128/api/v1` there, without a
 * key.
 */
export interface AgentCommand {
  /** Program and arguments, as in the sandbox. */
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  readonly programs: readonly AgentProgram[];
  /** Files to write before the start: path in the sandbox to content. */
  readonly files: Readonly<Record<string, string>>;
}

/** The pipes of the agent's process. */
export interface AgentStdio {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves when the process has ended, for whatever reason: with the `Ending` of a sandbox's command, if it is one. */
  readonly exited: Promise<unknown>;
}

/** Absolute paths in the sandbox. */
export interface AgentSurroundings {
  /** Node.js, as a path or a name that `PATH` has. */
  readonly node: string;
  /** Belongs to the agent and lasts as long as the workspace. */
  readonly home: string;
  readonly workspace: string;
  /** Base URL of the gateway's inference operations, which adds the intern's key: `http://127.0.0.1:3128/api/v1`. */
  readonly gateway: string;
}

/** A program that can be an intern. */
export interface AgentProfile {
  readonly name: string;
  command(settings: AgentSettings, surroundings: AgentSurroundings): AgentCommand;
  /**
   * Does the handshake with the agent. Rejects with AgentGone if it ends, and with AgentRefused if it cannot be used.
   */
  connect(stdio: AgentStdio, surroundings: AgentSurroundings): Promise<AgentConnection>;
}

export interface AgentConnection {
  /** Resolves when the agent can no longer be reached. Never rejects. */
  readonly gone: Promise<void>;
  /**
   * Opens a session in which nothing runs. Rejects with AgentGone, and with AgentRefused.
   * @param known the agent's id of an earlier session, also of an earlier process; null for a new one
   * @param log what was said in that session, oldest first, for agents that cannot load one
   */
  openSession(known: string | null, log: readonly SessionEntry[]): Promise<AgentSession>;
  /** Ends the connection. The caller ends the process. */
  close(): void;
}

export interface SessionEntry {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

export interface AgentSession {
  /** The agent's id. */
  readonly id: string;
  /**
   * Runs one turn. Resolves when the agent says that it is over, or with `failed` if it does not accept the prompt; events do
   * not come after that. Rejects with AgentGone if the connection ends first, and with AgentRefused if a turn runs already.
   */
  prompt(prompt: AgentPrompt, events: AgentEvents): Promise<TurnEnd>;
  /** Adds a message to the turn that runs. Resolves with false if the agent cannot do that now. */
  steer(text: string): Promise<boolean>;
  /** Requests the end of the running turn; `prompt` then resolves. Pending questions are answered with `cancel`. */
  cancel(): void;
}

export interface AgentPrompt {
  readonly text: string;
  /** `manual`: the agent asks before it uses a tool that needs consent. `self-drive`: it need not ask. */
  readonly mode: ApprovalMode;
}

export type ApprovalMode = 'manual' | 'self-drive';

export interface AgentEvents {
  content(text: string): void;
  reasoning(text: string): void;
  /** The model that the agent says it uses. */
  model(name: string): void;
  /** The agent waits until `reply` is called; only the first call counts. */
  question(question: AgentQuestion, reply: (answer: AgentAnswer) => void): void;
}

export type PermissionOption = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';

export interface QuestionField {
  readonly name: string;
  /** Of JSON Schema: `string`, `number`, `integer`, `boolean` or `array`. */
  readonly type: string;
  readonly required: boolean;
  readonly options?: readonly string[];
}

export type AgentQuestion =
  /** `operation`: the operation that needs consent, such as `shell`. */
  | { readonly kind: 'permission'; readonly operation: string | null; readonly options: readonly PermissionOption[] }
  | { readonly kind: 'elicitation'; readonly message: string; readonly fields: readonly QuestionField[] };

/** `option` answers a permission, `accept` and `decline` an elicitation, `cancel` both. */
export type AgentAnswer =
  | { readonly action: 'option'; readonly option: PermissionOption }
  | { readonly action: 'accept'; readonly content: Readonly<Record<string, unknown>> }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' };

export interface TurnEnd {
  /** `failed`: the agent gave up, or refused. */
  readonly outcome: 'complete' | 'cancelled' | 'failed';
  /** Why it failed, for the caller of the intern. */
  readonly message?: string;
  /** As reported by the agent; null if it reports none. */
  readonly usage: AgentUsage | null;
}

export interface AgentUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
}

/** The agent's process ended, or its stream broke. */
export class AgentGone extends Error {
  /** The limit of its sandbox that it exceeded, if that ended it. */
  readonly limit: 'disk' | 'memory' | null;

  constructor(message: string, limit: AgentGone['limit'] = null, options: ErrorOptions = {}) {
    super(message, options);
    this.limit = limit;
  }
}

/** The agent can be reached, and refuses. */
export class AgentRefused extends Error {}

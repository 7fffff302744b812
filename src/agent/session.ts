/** One conversation: the loop between the model, its tools and the person. */
import type { Clock } from '../base/clock.ts';
import type { History } from './history.ts';
import { type Message, NO_USAGE, sum, type ToolCall, type Usage } from './message.ts';
import { type Model, ModelError, type Reply } from './model.ts';
import { Permissions } from './permissions.ts';
import { argumentsOf, cut, type Tool, ToolError } from './tools/tool.ts';

/** `manual` asks before a tool that needs consent; `self-drive` does not. */
export type Mode = 'manual' | 'self-drive';

/** How a turn ended, in the protocol's words. */
interface TurnEnd {
  readonly stopReason: 'end_turn' | 'max_tokens' | 'max_turn_requests' | 'refusal' | 'cancelled';
  readonly usage: Usage;
}

/** The other side: shows what happens and asks. */
export interface Person {
  content(text: string): void;
  reasoning(text: string): void;
  model(name: string): void;
  toolStarted(call: ToolCall, tool: Tool | undefined, title: string): void;
  toolEnded(call: ToolCall, result: string, failed: boolean): void;
  /** Resolves with the option they chose; with null if the turn was cancelled. */
  permission(call: ToolCall, tool: Tool, title: string): Promise<PermissionAnswer | null>;
  ask(question: string, choices: readonly string[] | null): Promise<string | null>;
}

export type PermissionAnswer = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';

interface SessionParts {
  readonly id: string;
  readonly folder: string;
  readonly clock: Clock;
  readonly model: Model;
  /** Null: the gateway chooses. */
  readonly modelName: string | null;
  readonly system: string;
  readonly tools: readonly Tool[];
  readonly history: History;
  readonly contextTokens: number;
}

/** Model calls of one turn; more than that is a loop that does not end. */
const MOST_MODEL_CALLS = 200;

export class Session {
  mode: Mode = 'manual';
  readonly #parts: SessionParts;
  readonly #permissions = new Permissions();
  /** What the person said while the turn runs; the next model call sees it. */
  readonly #steered: string[] = [];
  #turn: AbortController | null = null;
  #reportedModel: string | null = null;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  get messages(): readonly Message[] {
    return this.#parts.history.messages;
  }

  /** Adds a message to the running turn. False if none runs. */
  steer(text: string): boolean {
    if (this.#turn === null || this.#turn.signal.aborted) return false;
    this.#steered.push(text);
    return true;
  }

  cancel(): void {
    this.#turn?.abort(new Cancelled());
  }

  /** One turn. Rejects with ModelError if the model cannot be asked, and if a turn runs already. */
  async prompt(text: string, person: Person): Promise<TurnEnd> {
    if (this.#turn !== null) throw new Error('a turn of this session is running');
    this.#turn = new AbortController();
    const { signal } = this.#turn;
    let usage = NO_USAGE;
    try {
      this.#parts.history.add({ role: 'user', content: text });
      for (let calls = 0; calls < MOST_MODEL_CALLS; calls++) {
        for (const message of this.#steered.splice(0)) this.#parts.history.add({ role: 'user', content: message });
        const reply = await this.#callModel(person, signal);
        usage = sum(usage, reply.usage);
        this.#parts.history.add(reply.message);
        for (const call of reply.message.tool_calls ?? []) await this.#runTool(call, person, signal);
        signal.throwIfAborted();
        const isOver = reply.message.tool_calls === undefined && this.#steered.length === 0;
        if (isOver) return { stopReason: stopReasonOf(reply.finishReason), usage };
      }
      return { stopReason: 'max_turn_requests', usage };
    } catch (error) {
      if (error instanceof Cancelled) return { stopReason: 'cancelled', usage };
      throw error;
    } finally {
      this.#turn = null;
      this.#steered.length = 0;
    }
  }

  async #callModel(person: Person, signal: AbortSignal): Promise<Reply> {
    const { id: session, model, modelName, system, tools, history, contextTokens } = this.#parts;
    history.shorten(contextTokens);
    const declared = tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, description, parameters },
    }));
    const ask = () => {
      const request = { session, model: modelName, system, messages: history.messages, tools: declared };
      return model.call(request, person, signal);
    };
    const reply = await ask().catch((error: unknown) => {
      // The model's context is smaller than the settings say.
      if (error instanceof ModelError && error.tooLong && history.shorten(contextTokens / 4)) return ask();
      throw error;
    });
    if (reply.model !== null && reply.model !== this.#reportedModel) {
      this.#reportedModel = reply.model;
      person.model(reply.model);
    }
    return reply;
  }

  /** Never rejects: each call gets a result, also after a cancellation. */
  async #runTool(call: ToolCall, person: Person, signal: AbortSignal): Promise<void> {
    const { history } = this.#parts;
    const tool = this.#parts.tools.find(({ name }) => name === call.function.name);
    let failed = false;
    const result = await this.#resultOf(call, tool, person, signal).catch((error: unknown) => {
      failed = true;
      if (error instanceof Cancelled) return 'cancelled by the person';
      return error instanceof ToolError ? error.message : `the tool failed: ${(error as Error).message}`;
    });
    history.add({ role: 'tool', tool_call_id: call.id, content: cut(result) });
    person.toolEnded(call, cut(result), failed);
  }

  async #resultOf(call: ToolCall, tool: Tool | undefined, person: Person, signal: AbortSignal): Promise<string> {
    if (tool === undefined) {
      person.toolStarted(call, tool, call.function.name);
      throw new ToolError(`there is no tool ${call.function.name}`);
    }
    const args = argumentsOf(tool, call.function.arguments);
    const title = tool.title(args);
    person.toolStarted(call, tool, title);
    signal.throwIfAborted();
    if (this.mode === 'manual' && tool.needsConsent) {
      const isAllowed = await this.#permissions.isAllowed(tool, () => person.permission(call, tool, title));
      signal.throwIfAborted();
      if (!isAllowed) throw new ToolError('The person does not allow this. Find another way, or ask.');
    }
    const { folder, clock } = this.#parts;
    return tool.run(args, { folder, clock, signal, ask: (question, choices) => person.ask(question, choices) });
  }
}

class Cancelled extends Error {}

function stopReasonOf(finishReason: string | null): TurnEnd['stopReason'] {
  if (finishReason === 'length') return 'max_tokens';
  return finishReason === 'content_filter' ? 'refusal' : 'end_turn';
}

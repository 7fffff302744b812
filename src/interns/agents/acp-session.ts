/** One conversation with an agent: its updates become events, its requests become questions. */
import type {
  ClientContext,
  CreateElicitationRequest,
  CreateElicitationResponse,
  methods,
  PermissionOption as OfferedOption,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk/unstable';
import { cut } from '../../base/characters.ts';
import {
  type AgentAnswer,
  type AgentEvents,
  type AgentPrompt,
  type AgentQuestion,
  AgentRefused,
  type AgentSession,
  type AgentUsage,
  type ApprovalMode,
  type PermissionOption,
  type QuestionField,
  type TurnEnd,
} from './connection.ts';

interface AcpSessionParts {
  readonly methods: typeof methods;
  readonly agent: ClientContext;
  readonly modes: Readonly<Partial<Record<ApprovalMode, string>>>;
  /** Null: the agent cannot be steered. */
  readonly steering: 'request' | 'prompt' | null;
  /** Rejects with AgentGone or AgentRefused. */
  answered<T>(work: Promise<T>): Promise<T>;
}

/** What an operation is called, by the protocol's kind of the tool. */
const OPERATIONS: Readonly<Record<string, string>> = { execute: 'shell' };
const LONGEST_OPERATION = 200;
/** Tool calls of a turn whose kind is remembered, since the question about one may not repeat it. */
const MOST_CALLS = 1_000;
const STEERING = '_session/steering';

export class AcpSession implements AgentSession {
  readonly id: string;
  readonly #parts: AcpSessionParts;
  /** An earlier conversation, which is added to the first prompt. */
  #log: string;
  #mode: string | undefined;
  #events: AgentEvents | null = null;
  #calls = new Map<string, ToolCallUpdate>();
  readonly #questions = new Set<(answer: AgentAnswer) => void>();

  constructor(id: string, log: string, parts: AcpSessionParts) {
    this.id = id;
    this.#log = log;
    this.#parts = parts;
  }

  async prompt({ text, mode }: AgentPrompt, events: AgentEvents): Promise<TurnEnd> {
    if (this.#events !== null) throw new AgentRefused('a turn of this session is running');
    this.#events = events;
    this.#calls = new Map();
    try {
      await this.#setMode(this.#parts.modes[mode]);
      const prompt = [{ type: 'text' as const, text: this.#log + text }];
      this.#log = '';
      const { agent, methods: known } = this.#parts;
      return endOf(
        await this.#parts.answered(agent.request(known.agent.session.prompt, { sessionId: this.id, prompt })),
      );
    } catch (error) {
      if (error instanceof AgentRefused) return { outcome: 'failed', message: error.message, usage: null };
      throw error;
    } finally {
      this.#events = null;
      this.#dropQuestions();
    }
  }

  async steer(text: string): Promise<boolean> {
    const { steering, agent, methods: known, answered } = this.#parts;
    if (this.#events === null || steering === null) return false;
    const asked = { sessionId: this.id, prompt: [{ type: 'text' as const, text }] };
    if (steering === 'prompt') {
      // Its own response comes with the end of the turn, which `prompt` reports.
      answered(agent.request(known.agent.session.prompt, asked)).catch(() => {});
      return true;
    }
    try {
      const { outcome } = await answered(agent.request<{ outcome?: string }>(STEERING, asked));
      return outcome === 'injected';
    } catch (error) {
      if (error instanceof AgentRefused) return false;
      throw error;
    }
  }

  cancel(): void {
    if (this.#events === null) return;
    const { agent, methods: known } = this.#parts;
    agent.notify(known.agent.session.cancel, { sessionId: this.id }).catch(() => {});
    this.#dropQuestions();
  }

  /** Updates outside of a turn are those of a session that is loaded. */
  update(update: SessionUpdate): void {
    const events = this.#events;
    if (events === null) return;
    if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text') {
      events.content(update.content.text);
    } else if (update.sessionUpdate === 'agent_thought_chunk' && update.content.type === 'text') {
      events.reasoning(update.content.text);
    } else if (update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update') {
      if (this.#calls.size < MOST_CALLS) {
        this.#calls.set(update.toolCallId, { ...this.#calls.get(update.toolCallId), ...defined(update) });
      }
    } else if (update.sessionUpdate === 'session_info_update') {
      const model = update._meta?.['model'];
      if (typeof model === 'string') events.model(model);
    }
  }

  async askPermission(
    { toolCall, options }: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const offered = new Map<PermissionOption, OfferedOption>();
    for (const option of options) if (!offered.has(option.kind)) offered.set(option.kind, option);
    const call = { ...this.#calls.get(toolCall.toolCallId), ...defined(toolCall) };
    const question = { kind: 'permission', operation: operationOf(call), options: [...offered.keys()] } as const;
    const answer = await this.#ask(question, signal);
    const chosen = answer.action === 'option' ? offered.get(answer.option) : undefined;
    if (chosen === undefined) return { outcome: { outcome: 'cancelled' } };
    return { outcome: { outcome: 'selected', optionId: chosen.optionId } };
  }

  async elicit(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    // A page to visit is nothing that an answer over the chat stream can confirm.
    if (request.mode !== 'form') return { action: 'decline' };
    const fields = fieldsOf(request as FormRequest);
    const answer = await this.#ask({ kind: 'elicitation', message: request.message, fields }, signal);
    if (answer.action === 'accept') return { action: 'accept', content: answer.content as Content };
    return { action: answer.action === 'decline' ? 'decline' : 'cancel' };
  }

  /** Resolves with `cancel` if no turn runs, or it ends, or the agent takes the question back. */
  #ask(question: AgentQuestion, signal: AbortSignal): Promise<AgentAnswer> {
    const events = this.#events;
    if (events === null) return Promise.resolve({ action: 'cancel' });
    const { promise, resolve } = Promise.withResolvers<AgentAnswer>();
    this.#questions.add(resolve);
    signal.addEventListener('abort', () => resolve({ action: 'cancel' }), { once: true });
    events.question(question, resolve);
    return promise.finally(() => this.#questions.delete(resolve));
  }

  #dropQuestions(): void {
    for (const answer of this.#questions) answer({ action: 'cancel' });
  }

  async #setMode(modeId: string | undefined): Promise<void> {
    if (modeId === undefined || modeId === this.#mode) return;
    const { agent, methods: known } = this.#parts;
    await this.#parts.answered(agent.request(known.agent.session.setMode, { sessionId: this.id, modeId }));
    this.#mode = modeId;
  }
}

type FormRequest = Extract<CreateElicitationRequest, { mode: 'form' }>;
type Content = Extract<CreateElicitationResponse, { action: 'accept' }>['content'];

/** An update repeats only what changed. */
function defined<T extends object>(update: T): T {
  return Object.fromEntries(Object.entries(update).filter(([, value]) => value !== undefined && value !== null)) as T;
}

/** The tool's kind where the protocol has one for it, else its title. */
function operationOf({ kind, title }: Partial<ToolCallUpdate>): string | null {
  if (kind && kind !== 'other') return OPERATIONS[kind] ?? kind;
  return title ? cut(title, LONGEST_OPERATION) : null;
}

function fieldsOf({ requestedSchema }: FormRequest): QuestionField[] {
  const required = new Set(requestedSchema.required ?? []);
  return Object.entries(requestedSchema.properties ?? {}).map(([name, property]) => {
    const options = optionsOf(property);
    return { name, type: property.type, required: required.has(name), ...(options === null ? {} : { options }) };
  });
}

interface WithChoices {
  readonly enum?: readonly string[] | null;
  readonly oneOf?: readonly { const: string }[] | null;
  readonly anyOf?: readonly { const: string }[] | null;
  readonly items?: WithChoices;
}

function optionsOf(property: object): readonly string[] | null {
  const { enum: plain, oneOf, anyOf, items } = property as WithChoices;
  if (plain) return plain;
  const titled = oneOf ?? anyOf;
  if (titled) return titled.map(({ const: value }) => value);
  return items === undefined ? null : optionsOf(items);
}

function endOf({ stopReason, usage }: PromptResponse): TurnEnd {
  const used: AgentUsage | null = usage
    ? {
        promptTokens: usage.inputTokens,
        completionTokens: usage.outputTokens,
        cachedTokens: usage.cachedReadTokens ?? 0,
      }
    : null;
  if (stopReason === 'cancelled') return { outcome: 'cancelled', usage: used };
  if (stopReason === 'refusal') return { outcome: 'failed', message: 'the model refused', usage: used };
  if (stopReason === 'max_turn_requests') {
    return { outcome: 'failed', message: 'the agent made as many model calls as it may in one turn', usage: used };
  }
  return { outcome: 'complete', usage: used };
}

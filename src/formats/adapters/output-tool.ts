/**
 * Structured output for upstreams without it (or without it alongside tools): the model must call a tool whose
 * arguments are the answer, and the client gets them as text. Not a format: it works between the conversation and the
 * spoken format.
 */

import { scanMembers } from '../../base/json.ts';
import type { Conversation, FunctionTool, Message, Turn, TurnEvent } from '../conversation/conversation.ts';
import { effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { Uncarried } from '../conversation/losses.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import type { TurnAdapter } from './adapter.ts';

/** The member that holds an answer whose schema is not an object. */
const WRAPPER = 'answer';
const ANY_OBJECT: Fields = { type: 'object', properties: {}, additionalProperties: true };

interface OutputTool {
  /** The conversation to send. */
  conversation: Conversation;
  name: string;
  /** The answer is one member of the arguments, not all of them. */
  wrapped: boolean;
}

/** @throws Uncarried when no tool can replace the output format */
export const outputTool: TurnAdapter = (conversation, { outputByTool }) => {
  if (!outputByTool) return { conversation };
  const tool = withOutputTool(conversation);
  if (tool === undefined) {
    throw new Uncarried('response_format', 'this output format cannot be replaced by a tool call');
  }
  return {
    conversation: tool.conversation,
    restoring: { decoder: (inner) => outputDecoder(inner, tool), turn: (turn) => outputTurn(turn, tool) },
  };
};

/** Returns undefined if no tool can replace the output format: there is none, or it is not JSON. */
function withOutputTool(conversation: Conversation): OutputTool | undefined {
  const { output, toolChoice, tools = [] } = conversation;
  if (output?.type !== 'json' && output?.type !== 'schema') return undefined;
  const { output: _, ...plain } = conversation;
  // The client wants a call, not an answer.
  if (toolChoice?.mode === 'required' || toolChoice?.mode === 'tool')
    return { conversation: plain, name: '', wrapped: false };
  if (toolChoice?.mode === 'opaque') return undefined;
  const schema = output.type === 'schema' ? output.schema : undefined;
  const wrapped = isFields(schema) && schema['type'] !== 'object';
  // Wrapping would invalidate references within the schema.
  if (wrapped && JSON.stringify(schema).includes('"$ref"')) return undefined;
  const name = freeName(output.type === 'schema' ? output.name : undefined, tools.map(nameOf));
  const tool: FunctionTool = {
    type: 'function',
    name,
    description:
      (output.type === 'schema' ? output.description : undefined) ??
      'Gives the answer to the user, who sees nothing but the arguments of this call.',
    parameters: wrapped ? wrapperOf(schema) : (schema ?? ANY_OBJECT),
    ...(output.type === 'schema' && output.strict === true && { strict: true }),
  };
  const others = toolChoice?.mode !== 'none' && tools.length > 0;
  // Services reject a forced call while thinking, so such a model is instructed instead.
  const thinks = ![undefined, 'none'].includes(effortOf(conversation.reasoning, null)) || asksToThink(conversation);
  const settings = others ? plain.settings : { ...plain.settings, parallelToolCalls: false };
  return {
    conversation: {
      ...plain,
      settings,
      messages: thinks ? [...instructed(plain.messages, name)] : plain.messages,
      tools: [...tools, tool],
      toolChoice: thinks
        ? { mode: 'auto' }
        : others || tools.length === 0
          ? { mode: 'required' }
          : { mode: 'tool', name },
    },
    name,
    wrapped,
  };
}

function asksToThink({ reasoning }: Conversation): boolean {
  if (reasoning === undefined) return false;
  const { enabled, adaptive, budgetTokens } = reasoning;
  return enabled === true || adaptive === true || (budgetTokens ?? 0) > 0;
}

/** Placed first, where it stays the same across turns. */
function instructed(messages: readonly Message[], name: string): Message[] {
  const text = `When you answer the user, do so by one call of the tool ${name}, without any other text.`;
  const first = messages[0];
  if (first?.role !== 'system') return [{ role: 'system', parts: [{ type: 'text', text }] }, ...messages];
  return [{ ...first, parts: [...first.parts, { type: 'text', text }] }, ...messages.slice(1)];
}

function nameOf(tool: { type: string; name?: string; value?: unknown }): string {
  return tool.name ?? textOf(fieldsOf(tool.value)['name']);
}

function freeName(wanted: string | undefined, taken: readonly string[]): string {
  const base = wanted !== undefined && /^[a-zA-Z0-9_-]{1,60}$/.test(wanted) ? wanted : WRAPPER;
  if (!taken.includes(base)) return base;
  for (let number = 2; ; number++) if (!taken.includes(`${base}_${number}`)) return `${base}_${number}`;
}

function wrapperOf(schema: unknown): Fields {
  return { type: 'object', properties: { [WRAPPER]: schema }, required: [WRAPPER], additionalProperties: false };
}

/** Decodes answers that may call the output tool. @param tool from `withOutputTool` */
function outputDecoder(inner: TurnDecoder, tool: OutputTool): TurnDecoder {
  if (tool.name === '') return inner;
  const answer = new OutputEvents(tool);
  return {
    read: (name, data, value) => answer.take(inner.read(name, data, value)),
    close: () => answer.take(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

/** The same for a complete answer. */
function outputTurn(turn: Turn, tool: OutputTool): Turn {
  if (tool.name === '') return turn;
  const { choices } = collect(new OutputEvents(tool).take(eventsOf(turn)));
  return { ...turn, choices };
}

interface ChoiceState {
  /** Part indexes of the upstream, mapped to those of the answer. */
  indexes: Map<number, number>;
  next: number;
  /** Text events held until it is known whether they are the answer. */
  held: TurnEvent[];
  /** Parts that hold the answer. */
  answers: Map<number, { text: string }>;
  calls: number;
  answered: boolean;
}

class OutputEvents {
  readonly #tool: OutputTool;
  readonly #choices = new Map<number, ChoiceState>();

  constructor(tool: OutputTool) {
    this.#tool = tool;
  }

  take(events: readonly TurnEvent[]): TurnEvent[] {
    const out: TurnEvent[] = [];
    for (const event of events) {
      if ('choice' in event) this.#one(event, this.#choice(event.choice), out);
      else out.push(event);
    }
    return out;
  }

  #choice(number: number): ChoiceState {
    let state = this.#choices.get(number);
    if (state === undefined) {
      state = { indexes: new Map(), next: 0, held: [], answers: new Map(), calls: 0, answered: false };
      this.#choices.set(number, state);
    }
    return state;
  }

  #one(event: Extract<TurnEvent, { choice: number }>, state: ChoiceState, out: TurnEvent[]): void {
    switch (event.type) {
      case 'partStart':
        this.#start(event, state, out);
        break;
      case 'partDelta':
      case 'partStop':
        this.#more(event, state, out);
        break;
      case 'finish':
        if (!state.answered) this.#release(state, out);
        out.push(this.#finish(event, state));
        break;
      default:
        out.push(event);
    }
  }

  #start(event: Extract<TurnEvent, { type: 'partStart' }>, state: ChoiceState, out: TurnEvent[]): void {
    const { part, choice, index } = event;
    if (part.type === 'text') {
      state.held.push(event);
      return;
    }
    if (part.type !== 'toolCall') {
      this.#open(event, state, out);
    } else if (part.name !== this.#tool.name) {
      // Text before a call is meant for the client.
      this.#release(state, out);
      state.calls += 1;
      this.#open(event, state, out);
    } else {
      // Other text would corrupt the structured answer.
      state.held = [];
      state.answered = true;
      state.answers.set(index, { text: part.arguments });
      const text = this.#tool.wrapped ? '' : part.arguments;
      this.#open({ type: 'partStart', choice, index, part: { type: 'text', text } }, state, out);
    }
  }

  #open(event: Extract<TurnEvent, { type: 'partStart' }>, state: ChoiceState, out: TurnEvent[]): void {
    const index = state.next++;
    state.indexes.set(event.index, index);
    out.push({ ...event, index });
  }

  #more(event: Extract<TurnEvent, { type: 'partDelta' | 'partStop' }>, state: ChoiceState, out: TurnEvent[]): void {
    const index = state.indexes.get(event.index);
    if (index === undefined) {
      if (!state.answered) state.held.push(event);
      return;
    }
    const answer = state.answers.get(event.index);
    if (answer === undefined) out.push({ ...event, index });
    else if (event.type === 'partDelta') this.#write(event.choice, index, answer, event.delta.arguments ?? '', out);
    else this.#complete(event.choice, index, answer, out);
  }

  #write(choice: number, index: number, answer: { text: string }, more: string, out: TurnEvent[]): void {
    answer.text += more;
    if (!this.#tool.wrapped && more !== '') out.push({ type: 'partDelta', choice, index, delta: { text: more } });
  }

  #complete(choice: number, index: number, answer: { text: string }, out: TurnEvent[]): void {
    const text = this.#tool.wrapped ? unwrap(answer.text) : answer.text.trim() === '' ? '{}' : '';
    if (text !== '') out.push({ type: 'partDelta', choice, index, delta: { text } });
    out.push({ type: 'partStop', choice, index });
  }

  #release(state: ChoiceState, out: TurnEvent[]): void {
    for (const event of state.held) {
      if (event.type === 'partStart') this.#open(event, state, out);
      else if (event.type === 'partDelta' || event.type === 'partStop') {
        out.push({ ...event, index: state.indexes.get(event.index)! });
      }
    }
    state.held = [];
  }

  #finish(event: Extract<TurnEvent, { type: 'finish' }>, state: ChoiceState): TurnEvent {
    const { finish } = event;
    if (!state.answered || state.calls > 0 || finish.unified !== 'tool_calls') return event;
    return { ...event, finish: { ...finish, unified: 'stop' } };
  }
}

/** Extracts the answer's original text; a truncated one is kept as far as it was received. */
function unwrap(text: string): string {
  const member = scanMembers(text).find(({ key }) => key === WRAPPER);
  return member === undefined ? text : text.slice(member.valueStart, member.valueEnd);
}

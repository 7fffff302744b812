/**
 * Thinking that a client cannot carry. Vendors that sign or encrypt their thinking continue a call of a tool only with it,
 * and most chat clients send back the call alone. What an answer with calls has thought is kept by the ids of its calls and
 * put back in front of them on the next turn. Pure; the memory is the caller's.
 */
import type { Conversation, Message, Part, ReasoningPart, ToolCallPart, Turn, TurnEvent } from './conversation.ts';
import type { TurnDecoder } from './format.ts';

/** What one answer thought before its calls. */
export interface KeptThinking {
  reasoning: readonly ReasoningPart[];
  /** Signatures of calls, by their ids. */
  signatures: ReadonlyMap<string, NonNullable<ToolCallPart['signature']>>;
  /** Names of the called tools, by the ids of the calls: an id that came again for another tool is another call. */
  names: ReadonlyMap<string, string>;
  /** In UTF-16 units. */
  size: number;
}

/** Of one caller. */
export interface ThinkingMemory {
  keep(thinking: KeptThinking): void;
  recall(callId: string): KeptThinking | undefined;
}

/** Of one answer; what thinks more is not kept. */
const MOST_SIZE = 256 * 1024;

/** Listens to one answer: to its thinking as the upstream told it, and to its calls as the client knows them. */
export class ThinkingTap {
  readonly #memory: ThinkingMemory;
  /** Of the first choice, by index. */
  readonly #reasoning = new Map<number, ReasoningPart>();
  readonly #calls = new Map<number, ToolCallPart['signature']>();
  readonly #names = new Map<string, string>();

  constructor(memory: ThinkingMemory) {
    this.#memory = memory;
  }

  /** Around the decoder of the upstream. */
  inner(decoder: TurnDecoder): TurnDecoder {
    return listening(decoder, (event) => this.#hear(event));
  }

  /** Around what the client is shown. */
  outer(decoder: TurnDecoder): TurnDecoder {
    return listening(decoder, (event) => {
      if (event.type === 'partStart' && event.choice === 0 && event.part.type === 'toolCall')
        this.#names.set(event.part.id, event.part.name);
      else if (event.type === 'finish' && event.choice === 0) this.#keep();
    });
  }

  /** A whole answer, as the upstream told it and as the client is shown it. */
  whole(told: Turn, shown: Turn): void {
    told.choices[0]?.parts.forEach((part, index) => void this.#start(index, part));
    for (const part of shown.choices[0]?.parts ?? []) if (part.type === 'toolCall') this.#names.set(part.id, part.name);
    this.#keep();
  }

  #hear(event: TurnEvent): void {
    if (event.type === 'partStart' && event.choice === 0) this.#start(event.index, event.part);
    else if (event.type === 'partDelta' && event.choice === 0) {
      const part = this.#reasoning.get(event.index);
      if (part === undefined) return;
      const { text, signature, encrypted } = event.delta;
      if (text) part.text += text;
      if (signature) part.signature = (part.signature ?? '') + signature;
      if (encrypted) part.encrypted = (part.encrypted ?? '') + encrypted;
    }
  }

  #start(index: number, part: Part): void {
    if (part.type === 'reasoning') this.#reasoning.set(index, { ...part });
    else if (part.type === 'toolCall') this.#calls.set(index, part.signature);
  }

  #keep(): void {
    // Gemini binds its thinking to the calls themselves; its other signatures stand behind texts that the client has.
    const reasoning = [...this.#reasoning.values()].filter(({ origin }) => origin !== 'google-gemini-v1');
    const signatures = new Map<string, NonNullable<ToolCallPart['signature']>>();
    const ids = [...this.#names.keys()];
    [...this.#calls.values()].forEach((signature, at) => {
      const id = ids[at];
      if (signature !== undefined && id !== undefined) signatures.set(id, signature);
    });
    if (ids.length === 0 || (signatures.size === 0 && !reasoning.some(isBound))) return;
    let size = 0;
    for (const { text, signature = '', encrypted = '' } of reasoning)
      size += text.length + signature.length + encrypted.length;
    for (const { value } of signatures.values()) size += value.length;
    if (size <= MOST_SIZE) this.#memory.keep({ reasoning, signatures, names: this.#names, size });
  }
}

function listening(inner: TurnDecoder, hear: (event: TurnEvent) => void): TurnDecoder {
  const heard = (events: TurnEvent[]): TurnEvent[] => {
    for (const event of events) hear(event);
    return events;
  };
  return {
    read: (name, data, value) => heard(inner.read(name, data, value)),
    close: () => heard(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

/** The conversation with what is remembered of its calls, where the client sent none of it. */
export function withKeptThinking(conversation: Conversation, memory: ThinkingMemory): Conversation {
  let changed = false;
  const messages = conversation.messages.map((message) => {
    const complete = withThinking(message, memory);
    changed ||= complete !== message;
    return complete;
  });
  return changed ? { ...conversation, messages } : conversation;
}

function withThinking(message: Message, memory: ThinkingMemory): Message {
  if (message.role !== 'assistant') return message;
  const first = message.parts.find((part) => part.type === 'toolCall');
  if (first?.type !== 'toolCall' || message.parts.some(carriesThinking)) return message;
  const kept = memory.recall(first.id);
  if (kept?.names.get(first.id) !== first.name) return message;
  const others = kept.reasoning.length === 0 ? message.parts : message.parts.filter(({ type }) => type !== 'reasoning');
  const parts = others.map((part): Part => {
    if (part.type !== 'toolCall') return part;
    const signature = kept.signatures.get(part.id);
    return signature === undefined ? part : { ...part, signature };
  });
  return { ...message, parts: [...kept.reasoning, ...parts] };
}

function carriesThinking(part: Part): boolean {
  return (part.type === 'reasoning' && isBound(part)) || (part.type === 'toolCall' && part.signature !== undefined);
}

/** Signed or encrypted: its vendor knows it again. */
function isBound({ signature, encrypted }: ReasoningPart): boolean {
  return Boolean(signature || encrypted);
}

/**
 * Remembers thinking that a client cannot carry. Vendors that sign or encrypt thinking require it with later tool
 * results, and most chat clients send back the call alone. The thinking of an answer with calls is stored under its
 * call ids and put back before the calls on the next turn. Pure; the caller provides the memory.
 */

import type {
  Conversation,
  Message,
  Part,
  ReasoningPart,
  ToolCallPart,
  Turn,
  TurnEvent,
} from '../conversation/conversation.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import type { Restoring } from './adapter.ts';

/** The thinking of one answer that precedes its calls. */
export interface KeptThinking {
  reasoning: readonly ReasoningPart[];
  /** Signatures of calls, by call id. */
  signatures: ReadonlyMap<string, NonNullable<ToolCallPart['signature']>>;
  /** Names of the called tools, by call id: the same id with a different tool is a different call. */
  names: ReadonlyMap<string, string>;
  /** In UTF-16 units. */
  size: number;
}

/** The memory of one caller. */
export interface ThinkingMemory {
  keep(thinking: KeptThinking): void;
  recall(callId: string): KeptThinking | undefined;
}

/** Limit per answer; larger thinking is not kept. */
const MAX_SIZE = 256 * 1024;

/** Keeps the thinking of one answer. @param hiding changes the answer for the client further, such as hiding reasoning */
export function keepThinking(memory: ThinkingMemory, hiding: Restoring | undefined): Restoring {
  const tap = new ThinkingTap(memory);
  return {
    decoder(inner) {
      const observed = tap.inner(inner);
      return tap.outer(hiding === undefined ? observed : hiding.decoder(observed));
    },
    turn(turn) {
      const seen = hiding === undefined ? turn : hiding.turn(turn);
      tap.whole(turn, seen);
      return seen;
    },
  };
}

/** Observes one answer: its thinking as the upstream sent it, and its call ids as the client sees them. */
class ThinkingTap {
  readonly #memory: ThinkingMemory;
  /** Of the first choice, by part index. */
  readonly #reasoning = new Map<number, ReasoningPart>();
  readonly #calls = new Map<number, ToolCallPart['signature']>();
  readonly #names = new Map<string, string>();

  constructor(memory: ThinkingMemory) {
    this.#memory = memory;
  }

  /** Observes the upstream's decoder. */
  inner(decoder: TurnDecoder): TurnDecoder {
    return observing(decoder, (event) => this.#observe(event));
  }

  /** Observes the events sent to the client. */
  outer(decoder: TurnDecoder): TurnDecoder {
    return observing(decoder, (event) => {
      if (event.type === 'partStart' && event.choice === 0 && event.part.type === 'toolCall')
        this.#names.set(event.part.id, event.part.name);
      else if (event.type === 'finish' && event.choice === 0) this.#keep();
    });
  }

  /** Observes a complete answer: `received` from the upstream, `sent` to the client. */
  whole(received: Turn, sent: Turn): void {
    received.choices[0]?.parts.forEach((part, index) => void this.#start(index, part));
    for (const part of sent.choices[0]?.parts ?? []) if (part.type === 'toolCall') this.#names.set(part.id, part.name);
    this.#keep();
  }

  #observe(event: TurnEvent): void {
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
    // Gemini binds its thinking to the calls; its other signatures belong to texts, which clients send back.
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
    if (size <= MAX_SIZE) this.#memory.keep({ reasoning, signatures, names: this.#names, size });
  }
}

function observing(inner: TurnDecoder, observe: (event: TurnEvent) => void): TurnDecoder {
  const passed = (events: TurnEvent[]): TurnEvent[] => {
    for (const event of events) observe(event);
    return events;
  };
  return {
    read: (name, data, value) => passed(inner.read(name, data, value)),
    close: () => passed(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

/** Restores remembered thinking where the client sent none with its calls. */
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

/** Whether it is signed or encrypted, so that its vendor can verify it. */
function isBound({ signature, encrypted }: ReasoningPart): boolean {
  return Boolean(signature || encrypted);
}

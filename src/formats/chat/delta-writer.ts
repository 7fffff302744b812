/** Writes turn events as deltas of chat chunks: tool indexes, reasoning details, citation offsets. */
import { inputText } from '../conversation/call-input.ts';
import type {
  Citation,
  Part,
  PartDelta,
  ReasoningPart,
  ToolCallPart,
  TurnEvent,
} from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { completeLogprobs } from '../conversation/logprobs.ts';
import { encodeCitation } from './citation.ts';
import { encodeUrl } from './content.ts';
import { encodeBlock, encodeCallSignature, encodeDetails } from './details.ts';
import { encodeAudio } from './encode-message.ts';

/** One delta of one choice, with its `logprobs`. */
export interface Piece {
  choice: number;
  delta: Fields;
  logprobs?: unknown;
}

interface Call {
  index: number;
  id: string;
  name: string;
  empty: boolean;
  /** Shown as a custom call. */
  custom: boolean;
  /** A custom call that is shown as a function's. Its text is collected here, until it can be written as JSON. */
  wrapped: ToolCallPart | undefined;
}

interface Thought {
  head: ReasoningPart;
  index: number;
  told: boolean;
  encrypted: string;
}

/** The state of one choice. */
interface ChoiceState {
  calls: Map<number, Call>;
  thoughts: Map<number, Thought>;
  /** Number of `reasoning_details` entries so far. */
  details: number;
  /** Characters of text so far, and the offset at which each text part began. */
  written: number;
  offsets: Map<number, number>;
  /** Citations of open parts that cite the whole part, whose end is not known yet. */
  waiting: Map<number, Citation[]>;
}

export class DeltaWriter {
  readonly #choices: ChoiceState[] = [];
  readonly #customTools: boolean;

  /** @param customTools the client knows custom calls */
  constructor(customTools: boolean) {
    this.#customTools = customTools;
  }

  /** Appends the deltas for a part event or log probabilities. */
  write(event: TurnEvent, pieces: Piece[]): void {
    switch (event.type) {
      case 'partStart':
        this.#start(event.choice, event.index, event.part, pieces);
        break;
      case 'partDelta':
        this.#add(event.choice, event.index, event.delta, pieces);
        break;
      case 'partStop':
        this.#stop(event.choice, event.index, pieces);
        break;
      case 'logprobs':
        pieces.push({ choice: event.choice, delta: {}, logprobs: completeLogprobs(event.logprobs) });
        break;
      default:
    }
  }

  #state(choice: number): ChoiceState {
    while (this.#choices.length <= choice) {
      this.#choices.push({
        calls: new Map(),
        thoughts: new Map(),
        details: 0,
        written: 0,
        offsets: new Map(),
        waiting: new Map(),
      });
    }
    return this.#choices[choice]!;
  }

  #start(choice: number, index: number, part: Part, pieces: Piece[]): void {
    const state = this.#state(choice);
    switch (part.type) {
      case 'text':
        state.offsets.set(index, state.written);
        if (part.text !== '') this.#add(choice, index, { text: part.text }, pieces);
        for (const citation of part.citations ?? []) this.#add(choice, index, { citation }, pieces);
        break;
      case 'refusal':
        state.offsets.set(index, -1);
        if (part.text !== '') pieces.push({ choice, delta: { refusal: part.text } });
        break;
      case 'reasoning':
        this.#startThought(choice, index, part, state, pieces);
        break;
      case 'toolCall': {
        const custom = part.custom === true && this.#customTools;
        const wrapped = part.custom === true && !custom ? { ...part, arguments: '' } : undefined;
        const call: Call = { index: state.calls.size, id: part.id, name: part.name, empty: true, custom, wrapped };
        state.calls.set(index, call);
        if (part.signature !== undefined) {
          const entry = encodeCallSignature(part.id, part.signature, state.details++);
          pieces.push({ choice, delta: { reasoning_details: [entry] } });
        }
        const opening = {
          index: call.index,
          id: part.id,
          ...(custom
            ? { type: 'custom', custom: { name: part.name, input: '' } }
            : { type: 'function', function: { name: part.name, arguments: '' } }),
        };
        pieces.push({ choice, delta: { tool_calls: [opening] } });
        if (part.arguments !== '') this.#add(choice, index, { arguments: part.arguments }, pieces);
        break;
      }
      case 'image':
        pieces.push({
          choice,
          delta: { images: [{ type: 'image_url', image_url: { url: encodeUrl(part.source, 'image') } }] },
        });
        break;
      case 'audio':
        pieces.push({ choice, delta: { audio: encodeAudio(part) } });
        break;
      case 'opaque': {
        // Deltas can only carry entries of reasoning_details.
        const entry = encodeBlock(part, state.details);
        if (entry === undefined) break;
        if (entry !== part.value) state.details += 1;
        pieces.push({ choice, delta: { reasoning_details: [entry] } });
        break;
      }
      default:
    }
  }

  #startThought(choice: number, index: number, part: ReasoningPart, state: ChoiceState, pieces: Piece[]): void {
    const head: ReasoningPart = { type: 'reasoning', text: '', origin: part.origin };
    if (part.id !== undefined) head.id = part.id;
    if (part.summary !== undefined) head.summary = part.summary;
    if (part.extras !== undefined) head.extras = part.extras;
    const thought: Thought = { head, index: state.details++, told: false, encrypted: part.encrypted ?? '' };
    state.thoughts.set(index, thought);
    if (part.text !== '' || part.signature !== undefined)
      this.#think(choice, thought, part.text, part.signature, pieces);
  }

  #think(choice: number, thought: Thought, text: string, signature: string | undefined, pieces: Piece[]): void {
    thought.told = true;
    const piece = { ...thought.head, text, ...(signature !== undefined && { signature }) };
    const delta: Fields = text === '' ? {} : { reasoning: text };
    delta['reasoning_details'] = encodeDetails(piece, thought.index);
    pieces.push({ choice, delta });
  }

  #add(choice: number, index: number, delta: PartDelta, pieces: Piece[]): void {
    const state = this.#state(choice);
    const call = state.calls.get(index);
    if (call !== undefined) {
      if (delta.arguments === undefined || delta.arguments === '') return;
      if (call.wrapped !== undefined) call.wrapped.arguments += delta.arguments;
      else this.#argue(choice, call, delta.arguments, pieces);
      return;
    }
    const thought = state.thoughts.get(index);
    if (thought !== undefined) {
      if (delta.encrypted !== undefined) thought.encrypted += delta.encrypted;
      if (delta.text !== undefined || delta.signature !== undefined) {
        this.#think(choice, thought, delta.text ?? '', delta.signature, pieces);
      }
      return;
    }
    if (delta.text !== undefined && delta.text !== '') {
      if (state.offsets.get(index) === -1) pieces.push({ choice, delta: { refusal: delta.text } });
      else {
        state.written += delta.text.length;
        pieces.push({ choice, delta: { content: delta.text } });
      }
    }
    if (delta.citation !== undefined) this.#cite(choice, index, delta.citation, pieces);
    if (delta.data !== undefined) pieces.push({ choice, delta: { audio: { data: delta.data } } });
    if (delta.transcript !== undefined) pieces.push({ choice, delta: { audio: { transcript: delta.transcript } } });
  }

  /** A citation without a range waits for the end of its part: some services send it ahead of the text. */
  #cite(choice: number, index: number, citation: Citation, pieces: Piece[]): void {
    const state = this.#state(choice);
    if (citation.end !== undefined || citation.native?.origin === 'chat') {
      this.#annotate(choice, index, citation, pieces);
      return;
    }
    const waiting = state.waiting.get(index);
    if (waiting === undefined) state.waiting.set(index, [citation]);
    else waiting.push(citation);
  }

  #annotate(choice: number, index: number, citation: Citation, pieces: Piece[]): void {
    const state = this.#state(choice);
    const annotation = encodeCitation(citation, state.offsets.get(index) ?? 0, state.written);
    if (annotation !== undefined) pieces.push({ choice, delta: { annotations: [annotation] } });
  }

  #argue(choice: number, call: Call, written: string, pieces: Piece[]): void {
    call.empty = false;
    const piece = call.custom ? { custom: { input: written } } : { function: { arguments: written } };
    pieces.push({ choice, delta: { tool_calls: [{ index: call.index, ...piece }] } });
  }

  #stop(choice: number, index: number, pieces: Piece[]): void {
    const state = this.#state(choice);
    const call = state.calls.get(index);
    // The arguments of a function are always JSON text: {} for a call without any (BerriAI/litellm#5064).
    if (call?.empty && !call.custom) {
      this.#argue(choice, call, call.wrapped === undefined ? '{}' : inputText(call.wrapped), pieces);
    }
    for (const citation of state.waiting.get(index) ?? []) this.#annotate(choice, index, citation, pieces);
    state.waiting.delete(index);
    const thought = state.thoughts.get(index);
    if (thought !== undefined && thought.encrypted !== '') {
      const { extras, ...head } = thought.head;
      const entry = { ...head, encrypted: thought.encrypted, ...(!thought.told && extras !== undefined && { extras }) };
      pieces.push({ choice, delta: { reasoning_details: encodeDetails(entry, thought.index) } });
    }
  }
}

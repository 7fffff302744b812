/**
 * Decodes a streamed reply event by event. `message-end` is the end marker; a `[DONE]` may follow. Citations arrive
 * during or after their text, so a text stays open until the next part begins.
 */
import type { Part, PartDelta, TurnEvent } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { decodeCitation, placeOf } from './citations.ts';
import { decodeBlock, decodeCall, PLAN } from './decode-reply.ts';
import { decodeFailure, failureFromFinish } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { decodeLogprobs } from './logprobs.ts';
import { decodeUsage } from './usage.ts';

/** A part being streamed. */
interface OpenPart {
  index: number;
  part: Part;
  /** Content index of the block; undefined for plan and calls. */
  content: unknown;
  /** For calls: whether argument text arrived. */
  said: boolean;
}

export class CohereDecoder implements TurnDecoder {
  #over = false;
  #started = false;
  #parts = 0;
  #calls = false;
  /** The text, reasoning or plan being streamed. */
  #open: OpenPart | undefined;
  /** Calls being streamed, by index: pieces of several calls may alternate. */
  readonly #openCalls = new Map<unknown, OpenPart>();

  read(name: string, data: string, value: unknown): TurnEvent[] {
    if (this.#over || data === '' || data === '[DONE]') return [];
    if (!isFields(value)) return this.#fail('malformed', 'an event of the stream is not a JSON object');
    const delta = fieldsOf(value['delta']);
    const message = fieldsOf(delta['message']);
    switch (value['type'] ?? name) {
      case 'content-delta':
        return this.#readContent(value['index'], fieldsOf(message['content']), value['logprobs']);
      case 'content-start':
        return this.#readContentStart(value['index'], fieldsOf(message['content']));
      case 'tool-plan-delta':
        return this.#readPlan(textOf(message['tool_plan']));
      case 'tool-call-start':
        return this.#readCallStart(value['index'], callOf(message['tool_calls']));
      case 'tool-call-delta':
        return this.#readCall(value['index'], callOf(message['tool_calls']));
      case 'tool-call-end':
        return this.#stopCall(value['index']);
      case 'citation-start':
        return this.#readCitation(message['citations']);
      case 'message-start':
        return this.#readMessage(value);
      case 'message-end':
        return this.#readEnd(delta);
      default:
        return this.#readOther(value, data);
    }
  }

  /** The event with the finish is already the last one. */
  toldFinish(): boolean {
    return false;
  }

  close(): TurnEvent[] {
    return this.#over ? [] : this.#fail('cut', 'the stream ended without its end marker');
  }

  #readMessage(value: Fields): TurnEvent[] {
    // A repeated start is harmless. A start after content would splice two replies.
    if (this.#parts > 0)
      return this.#fail('malformed', 'the provider restarted its message in the middle of the stream');
    if (this.#started) return [];
    this.#started = true;
    return [{ type: 'start', id: textOrUndefined(value['id']) }];
  }

  #readContentStart(content: unknown, block: Fields): TurnEvent[] {
    return this.#begin(decodeBlock(block), content);
  }

  #readContent(content: unknown, block: Fields, logprobs: unknown): TurnEvent[] {
    const thinks = typeof block['thinking'] === 'string';
    const text = textOf(thinks ? block['thinking'] : block['text']);
    const kind = thinks ? 'reasoning' : 'text';
    const events: TurnEvent[] = [];
    if (this.#open === undefined || this.#open.content !== content || this.#open.part.type !== kind) {
      // Some streams omit the start event.
      events.push(...this.#begin(decodeBlock({ type: thinks ? 'thinking' : 'text' }), content));
    }
    if (text !== '') events.push(this.#tell({ text }));
    const read = decodeLogprobs(logprobs);
    if (read !== undefined) events.push({ type: 'logprobs', choice: 0, logprobs: read });
    return events;
  }

  #readPlan(text: string): TurnEvent[] {
    if (text === '') return [];
    const planning = this.#open?.part.type === 'reasoning' && this.#open.part.id === PLAN;
    const start = planning ? [] : this.#begin({ type: 'reasoning', text: '', id: PLAN, origin: 'unknown' }, undefined);
    return [...start, this.#tell({ text })];
  }

  #readCallStart(index: unknown, call: Fields): TurnEvent[] {
    const part = decodeCall(call, this.#parts);
    if (part.name === '') return this.#fail('malformed', 'a tool call has no name');
    const first = textOf(fieldsOf(call['function'])['arguments']);
    part.arguments = '';
    this.#calls = true;
    // Some services do not number calls, or number all alike, but send them one after the other.
    const events = [...this.#stop(), ...this.#stopCall(index)];
    const open = this.#opened(part, undefined);
    this.#openCalls.set(index, open);
    events.push({ type: 'partStart', choice: 0, index: open.index, part });
    return [...events, ...sayArguments(open, first)];
  }

  #readCall(index: unknown, call: Fields): TurnEvent[] {
    const open =
      this.#openCalls.get(index) ?? (this.#openCalls.size === 1 ? [...this.#openCalls.values()][0] : undefined);
    if (open === undefined) return this.#fail('malformed', 'arguments arrived without a tool call');
    return sayArguments(open, textOf(fieldsOf(call['function'])['arguments']));
  }

  #stopCall(index: unknown): TurnEvent[] {
    const open = this.#openCalls.get(index);
    if (open === undefined) return [];
    this.#openCalls.delete(index);
    return [...(open.said ? [] : sayArguments(open, '{}')), { type: 'partStop', choice: 0, index: open.index }];
  }

  #stopCalls(): TurnEvent[] {
    return [...this.#openCalls.keys()].flatMap((index) => this.#stopCall(index));
  }

  #readCitation(value: unknown): TurnEvent[] {
    const place = placeOf(value);
    // Only an open text accepts citations.
    if (this.#open?.part.type !== 'text' || this.#open.content !== place) return [];
    return [this.#tell({ citation: decodeCitation(value) })];
  }

  #readEnd(delta: Fields): TurnEvent[] {
    const usage = decodeUsage(delta['usage']);
    const events: TurnEvent[] = usage === undefined ? [] : [{ type: 'usage', usage }];
    const finish = decodeFinish(delta['finish_reason'], this.#calls, this.#parts > 0);
    this.#over = true;
    if (finish.unified === 'error') {
      const failure = failureFromFinish(finish.native ?? '', delta['error']);
      return [...events, { type: 'failure', failure }];
    }
    return [...this.#stop(), ...this.#stopCalls(), ...events, { type: 'finish', choice: 0, finish }, { type: 'end' }];
  }

  /** An event type of a later API version, or an error object without a type. */
  #readOther(value: Fields, data: string): TurnEvent[] {
    const told = value['error'] ?? (value['type'] === undefined ? value['message'] : undefined);
    if (told === undefined || told === null) return [];
    this.#over = true;
    return [{ type: 'failure', failure: { ...decodeFailure(500, data), status: null } }];
  }

  #begin(part: Part, content: unknown): TurnEvent[] {
    const events = this.#stop();
    this.#open = this.#opened(part, content);
    events.push({ type: 'partStart', choice: 0, index: this.#open.index, part });
    return events;
  }

  #opened(part: Part, content: unknown): OpenPart {
    return { index: this.#parts++, part, content, said: false };
  }

  /** Ends the open part. Not called at the end of its block, because citations may follow. */
  #stop(): TurnEvent[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    return [{ type: 'partStop', choice: 0, index: open.index }];
  }

  #tell(delta: PartDelta): TurnEvent {
    return { type: 'partDelta', choice: 0, index: this.#open!.index, delta };
  }

  #fail(kind: UpstreamFailure['kind'], message: string): TurnEvent[] {
    this.#over = true;
    return [{ type: 'failure', failure: { kind, status: null, message } }];
  }
}

function sayArguments(open: OpenPart, piece: string): TurnEvent[] {
  if (piece === '') return [];
  open.said = true;
  return [{ type: 'partDelta', choice: 0, index: open.index, delta: { arguments: piece } }];
}

/** The call of an event; some services wrap it in a list. */
function callOf(value: unknown): Fields {
  return fieldsOf(Array.isArray(value) ? value[0] : value);
}

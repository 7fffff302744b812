/** Decodes one choice of a streamed answer: tracks its open parts and adds each delta to them. */

import { isObjectText } from '../conversation/call-input.ts';
import type { Citation, Part, PartDelta, ReasoningOrigin, TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import { decodeCitations } from './citation.ts';
import { decodeContent, decodeUrl } from './content.ts';
import { argumentsText } from './decode-message.ts';
import { decodeLogprobs, inventedCallId } from './decode-reply.ts';
import { blockOf, readDetail } from './details.ts';
import type { ChatDialect } from './dialect.ts';
import { readFinish } from './finish.ts';
import { ThinkTags, type Told } from './think-tags.ts';

interface Call {
  /** The upstream's index, or null when it sends none. */
  key: number | null;
  /** The upstream's id, if it sent one. */
  id: string | undefined;
  name: string;
  /** Index of the part; -1 until the name is known. */
  part: number;
  /** Arguments received before the name. */
  waiting: string;
  /** All arguments received so far. */
  told: string;
  custom: boolean;
}

type Flow = 'text' | 'reasoning' | 'refusal' | 'audio';

/** The key of the legacy single function call; no index of `tool_calls` can have it. */
const FUNCTION_CALL = -1;

export class ChoiceDecoder {
  /** Whether a finish reason was received. */
  finished = false;
  readonly #index: number;
  readonly #replyId: string | undefined;
  #native: string | null = null;
  #stopReason: unknown;
  #parts = 0;
  /** The open part of text, reasoning, refusal or audio; calls stay open alongside it until the end. */
  #flow: Flow | undefined;
  #flowPart = -1;
  #reasoningKey = '';
  readonly #calls: Call[] = [];
  #callSignatures: Map<string, { value: string; origin: ReasoningOrigin }> | undefined;
  #invented = 0;
  /** The answer already has content: a `message` instead of a `delta` then repeats it. */
  #visible = false;

  /** Detects thinking at the beginning of the text, as long as it may occur. */
  #tags: ThinkTags | undefined;

  constructor(index: number, replyId: string | undefined, dialect: ChatDialect) {
    this.#index = index;
    this.#replyId = replyId;
    if (dialect.thinkTags) this.#tags = new ThinkTags();
  }

  read(choice: Fields, events: TurnEvent[]): void {
    const delta =
      fieldsOrUndefined(choice['delta']) ?? (this.#visible ? undefined : fieldsOrUndefined(choice['message']));
    if (delta !== undefined) this.#readDelta(delta, events);
    const logprobs = choice['logprobs'];
    if (logprobs !== undefined && logprobs !== null) {
      const decoded = decodeLogprobs(logprobs);
      if (decoded !== undefined) events.push({ type: 'logprobs', choice: this.#index, logprobs: decoded });
    }
    const native = nonEmptyText(choice['finish_reason']);
    if (native !== undefined) {
      this.#endTags(events);
      this.finished = true;
      this.#native = native;
      this.#stopReason = choice['stop_reason'];
    }
  }

  /** Stops the open parts and emits the finish. `sources` are citations sent next to the answer. */
  close(sources: readonly Citation[], events: TurnEvent[]): void {
    this.#endTags(events);
    if (sources.length > 0) this.#cite(sources, events);
    this.#stopFlow(events);
    // A call that never got a name cannot be executed.
    const calls = this.#calls.filter((call) => call.part !== -1);
    for (const call of calls) {
      events.push({ type: 'partStop', choice: this.#index, index: call.part });
    }
    const finish = readFinish(this.#native, { calls: calls.length > 0, content: this.#visible }, this.#stopReason);
    events.push({ type: 'finish', choice: this.#index, finish });
  }

  #readDelta(delta: Fields, events: TurnEvent[]): void {
    const content = delta['content'];
    // Fast path for the usual event: a piece of text and nothing else.
    if (this.#flow === 'text' && typeof content === 'string' && content !== '' && isPlain(delta)) {
      this.#add({ text: content }, events);
      return;
    }
    this.#readReasoning(delta, events);
    if (typeof content === 'string') {
      if (content !== '') this.#readText(content, events);
    } else if (content !== undefined && content !== null) {
      for (const part of decodeContent(content)) this.#readPart(part, events);
    }
    const refusal = nonEmptyText(delta['refusal']);
    if (refusal !== undefined) this.#write('refusal', refusal, events);
    if (delta['annotations'] !== undefined) {
      const citations = decodeCitations(delta['annotations']);
      if (citations.length > 0) this.#cite(citations, events);
    }
    for (const image of listOf(delta['images'])) {
      const url = textOf(fieldsOrUndefined(fieldsOrUndefined(image)?.['image_url'])?.['url']);
      if (url !== '') this.#whole({ type: 'image', source: decodeUrl(url) }, events);
    }
    const audio = fieldsOrUndefined(delta['audio']);
    if (audio !== undefined) this.#readAudio(audio, events);
    const calls = delta['tool_calls'];
    if (Array.isArray(calls)) for (const call of calls) this.#readCall(fieldsOf(call), events);
    // Older versions of one service send a single call without the list.
    else if (fieldsOrUndefined(calls) !== undefined) this.#readCall(fieldsOrUndefined(calls)!, events);
    const legacy = fieldsOrUndefined(delta['function_call']);
    if (legacy !== undefined) this.#readCall({ index: FUNCTION_CALL, function: legacy }, events);
  }

  #readText(content: string, events: TurnEvent[]): void {
    if (this.#tags === undefined) this.#write('text', content, events);
    else {
      this.#tell(this.#tags.read(content), events);
      if (this.#tags.over) this.#tags = undefined;
    }
  }

  #endTags(events: TurnEvent[]): void {
    const tags = this.#tags;
    this.#tags = undefined;
    if (tags !== undefined) this.#tell(tags.end(), events);
  }

  #tell({ reasoning, text: written }: Told, events: TurnEvent[]): void {
    if (reasoning !== '') this.#think(reasoning, events);
    if (written !== '') this.#write('text', written, events);
  }

  #think(reasoning: string, events: TurnEvent[]): void {
    this.#openReasoning('', { type: 'reasoning', text: '', origin: 'unknown' }, events);
    this.#add({ text: reasoning }, events);
  }

  #readPart(part: Part, events: TurnEvent[]): void {
    if (part.type === 'text' || part.type === 'refusal') {
      if (part.text !== '') this.#write(part.type, part.text, events);
    } else if (part.type === 'reasoning') {
      this.#openReasoning('', { type: 'reasoning', text: '', origin: part.origin }, events);
      if (part.text !== '') this.#add({ text: part.text }, events);
      if (part.signature !== undefined) this.#add({ signature: part.signature }, events);
    } else this.#whole(part, events);
  }

  #readReasoning(delta: Fields, events: TurnEvent[]): void {
    let told = false;
    const entries = delta['reasoning_details'];
    if (Array.isArray(entries)) {
      for (const entry of entries) {
        const detail = readDetail(entry);
        if (detail === undefined) continue;
        const block = blockOf(detail);
        if (block !== undefined) {
          this.#whole(block, events);
          continue;
        }
        if (detail.kind === 'encrypted' && this.#isCallOf(delta, detail.id)) {
          this.#callSignatures ??= new Map();
          this.#callSignatures.set(detail.id!, { value: detail.encrypted ?? '', origin: detail.origin });
          continue;
        }
        told ||= detail.text !== '';
        const head: Part & { type: 'reasoning' } = { type: 'reasoning', text: '', origin: detail.origin };
        if (detail.id !== undefined) head.id = detail.id;
        if (detail.kind === 'summary') head.summary = true;
        this.#openReasoning(detail.key, head, events);
        if (detail.text !== '') this.#add({ text: detail.text }, events);
        if (detail.signature !== undefined) this.#add({ signature: detail.signature }, events);
        if (detail.encrypted !== undefined) this.#add({ encrypted: detail.encrypted }, events);
      }
    }
    if (told) return;
    const plain = nonEmptyText(delta['reasoning']) ?? nonEmptyText(delta['reasoning_content']);
    if (plain === undefined) return;
    this.#think(plain, events);
  }

  /** Encrypted reasoning with the id of a call in the same event belongs to that call. */
  #isCallOf(delta: Fields, id: string | undefined): boolean {
    return id !== undefined && listOf(delta['tool_calls']).some((call) => fieldsOrUndefined(call)?.['id'] === id);
  }

  #openReasoning(key: string, part: Part & { type: 'reasoning' }, events: TurnEvent[]): void {
    if (this.#flow === 'reasoning' && this.#reasoningKey === key) return;
    this.#openFlow('reasoning', part, events);
    this.#reasoningKey = key;
  }

  #readAudio(audio: Fields, events: TurnEvent[]): void {
    if (this.#flow !== 'audio') {
      const part: Part = { type: 'audio' };
      const id = nonEmptyText(audio['id']);
      if (id !== undefined) part.id = id;
      if (typeof audio['expires_at'] === 'number') part.expiresAt = audio['expires_at'];
      this.#openFlow('audio', part, events);
    }
    const data = nonEmptyText(audio['data']);
    const transcript = nonEmptyText(audio['transcript']);
    if (data !== undefined || transcript !== undefined) {
      this.#add({ ...(data !== undefined && { data }), ...(transcript !== undefined && { transcript }) }, events);
    }
  }

  #readCall(value: Fields, events: TurnEvent[]): void {
    const custom = fieldsOrUndefined(value['custom']);
    const body = fieldsOrUndefined(value['function']) ?? custom ?? {};
    const key = typeof value['index'] === 'number' ? value['index'] : null;
    const id = nonEmptyText(value['id']);
    const name = textOf(body['name']);
    const written = argumentsText(custom === body ? body['input'] : body['arguments']);
    let call = this.#findCall(key, id, name);
    if (call !== undefined && isTwin(call, id, name, written)) {
      // An identical repetition is the same call.
      if (name === call.name && written === call.told) return;
      call = undefined;
    }
    if (call === undefined) {
      if (id === undefined && name === '' && this.#calls.length > 0 && key === null) call = this.#calls.at(-1)!;
      else {
        call = { key, id, name: '', part: -1, waiting: '', told: '', custom: custom !== undefined };
        this.#calls.push(call);
      }
    }
    call.id ??= id;
    if (call.name === '' && name !== '') call.name = name;
    call.told += written;
    if (call.part === -1) {
      call.waiting += written;
      if (call.name !== '') this.#startCall(call, events);
    } else if (written !== '') {
      events.push({ type: 'partDelta', choice: this.#index, index: call.part, delta: { arguments: written } });
    }
  }

  /** A new id with a name is a new call, whatever its index (ai-dynamo/dynamo#4723). */
  #findCall(key: number | null, id: string | undefined, name: string): Call | undefined {
    if (key === null) return id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
    const call = this.#calls.findLast((candidate) => candidate.key === key);
    const fresh = call !== undefined && id !== undefined && call.id !== undefined && id !== call.id && name !== '';
    return fresh ? undefined : call;
  }

  #startCall(call: Call, events: TurnEvent[]): void {
    this.#endTags(events);
    this.#stopFlow(events);
    const id = call.id ?? inventedCallId(this.#replyId, this.#index, this.#invented++);
    call.id = id;
    call.part = this.#parts++;
    this.#visible = true;
    const part: Part = { type: 'toolCall', id, name: call.name, arguments: '' };
    if (call.custom) part.custom = true;
    const signature = this.#callSignatures?.get(id);
    if (signature !== undefined) part.signature = signature;
    events.push({ type: 'partStart', choice: this.#index, index: call.part, part });
    if (call.waiting === '') return;
    events.push({ type: 'partDelta', choice: this.#index, index: call.part, delta: { arguments: call.waiting } });
    call.waiting = '';
  }

  #write(flow: 'text' | 'refusal', written: string, events: TurnEvent[]): void {
    if (this.#flow !== flow) this.#openFlow(flow, { type: flow, text: '' }, events);
    this.#add({ text: written }, events);
  }

  #cite(citations: readonly Citation[], events: TurnEvent[]): void {
    if (this.#flow !== 'text') this.#openFlow('text', { type: 'text', text: '' }, events);
    for (const citation of citations) this.#add({ citation }, events);
  }

  #add(delta: PartDelta, events: TurnEvent[]): void {
    events.push({ type: 'partDelta', choice: this.#index, index: this.#flowPart, delta });
  }

  #openFlow(flow: Flow, part: Part, events: TurnEvent[]): void {
    this.#stopFlow(events);
    this.#flow = flow;
    this.#flowPart = this.#parts++;
    this.#visible = true;
    events.push({ type: 'partStart', choice: this.#index, index: this.#flowPart, part });
  }

  #stopFlow(events: TurnEvent[]): void {
    if (this.#flow === undefined) return;
    events.push({ type: 'partStop', choice: this.#index, index: this.#flowPart });
    this.#flow = undefined;
    this.#reasoningKey = '';
  }

  #whole(part: Part, events: TurnEvent[]): void {
    this.#stopFlow(events);
    const index = this.#parts++;
    this.#visible = true;
    events.push({ type: 'partStart', choice: this.#index, index, part });
    events.push({ type: 'partStop', choice: this.#index, index });
  }
}

/**
 * Whether this is a further call despite the same id and index: the known call is complete, and this has a name and
 * arguments.
 */
function isTwin(call: Call, id: string | undefined, name: string, written: string): boolean {
  if (id === undefined || id !== call.id || name === '' || call.name === '' || written === '') return false;
  return isObjectText(call.told);
}

function isPlain(delta: Fields): boolean {
  for (const key in delta) {
    if (key !== 'content' && key !== 'role' && delta[key] !== null && delta[key] !== undefined) return false;
  }
  return true;
}

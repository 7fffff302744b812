/** Decodes one candidate of a reply. The format marks no boundaries between parts, so pieces of one kind are joined. */
import { stringifyJson } from '../../base/json.ts';
import type { Citation, OpaquePart, Part, PartDelta, TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { ServedCall } from '../conversation/served-call.ts';
import { Citations } from './citations.ts';
import { Base64Joiner, mediaPart } from './media-reply.ts';
import { setPath } from './partial-arguments.ts';

/** A call whose arguments are streamed as JSON paths: they are JSON only once the call is complete. */
interface OpenCall {
  part: number;
  input: Fields;
}

export class CandidateDecoder {
  readonly index: number;
  finishReason: string | undefined;
  finishMessage: string | undefined;
  calls = 0;
  readonly citations = new Citations();
  readonly #idPrefix: string;
  readonly #ids = new Set<string>();
  #parts = 0;
  /** The part that the next piece of the same kind continues. */
  #open: { kind: 'text' | 'thought' | 'audio'; part: number } | undefined;
  #sound: Base64Joiner | undefined;
  #call: OpenCall | undefined;
  /** Code that the service has run last. */
  #code: ServedCall | undefined;
  /** All text so far. */
  #text = '';

  /** `idPrefix` starts the ids of calls that have none. It is unique to this reply. */
  constructor(index: number, idPrefix: string) {
    this.index = index;
    this.#idPrefix = idPrefix;
  }

  /** Whether the candidate produced any part. */
  get said(): boolean {
    return this.#parts > 0;
  }

  read(candidate: Fields): TurnEvent[] {
    const events: TurnEvent[] = [];
    for (const part of listOf(fieldsOf(candidate['content'])['parts'])) this.#readPart(fieldsOf(part), events);
    for (const citation of this.citations.read(candidate, this.#text)) this.#tellCitation(citation, events);
    const logprobs = logprobsOf(candidate['logprobsResult']);
    if (logprobs.length > 0) events.push({ type: 'logprobs', choice: this.index, logprobs: { content: logprobs } });
    if (typeof candidate['finishReason'] === 'string') this.finishReason = candidate['finishReason'];
    if (typeof candidate['finishMessage'] === 'string') this.finishMessage = candidate['finishMessage'];
    return events;
  }

  /** Stops the parts that are still open. */
  close(): TurnEvent[] {
    const events: TurnEvent[] = [];
    this.#closeCall(events);
    this.#closeOpen(events);
    const served = this.citations.search;
    // Citations are all that the format has for a search.
    if (served !== undefined) this.#tellPart({ type: 'opaque', origin: 'gemini', value: undefined, served }, events);
    return events;
  }

  #readPart(part: Fields, events: TurnEvent[]): void {
    const signature = textOrUndefined(part['thoughtSignature']);
    if (isFields(part['functionCall'])) this.#readCall(part['functionCall'], signature, events);
    else if (typeof part['text'] === 'string')
      this.#readText(part['text'], part['thought'] === true, signature, events);
    else {
      const media = mediaPart(part);
      if (media?.type === 'audio') this.#readAudio(media, events);
      // Code run by the server, its result and the server's tools: only Gemini can read them and their signatures.
      else this.#tellWhole(media ?? this.#ownPart(part), events);
      if (media !== undefined && signature !== undefined) this.#tellSignature(signature, events);
    }
  }

  /** Code that the server ran is shown with its result. */
  #ownPart(value: Fields): OpaquePart {
    const part: OpaquePart = { type: 'opaque', origin: 'gemini', value };
    const { executableCode: code, codeExecutionResult: result } = value;
    if (isFields(code)) {
      part.served = { id: `code_${this.#parts}`, tool: 'code_execution', input: textOf(code['code']) };
      this.#code = part.served;
    } else if (isFields(result) && this.#code !== undefined) {
      const failed = result['outcome'] !== undefined && result['outcome'] !== 'OUTCOME_OK';
      part.served = { ...this.#code, result: { failed, text: textOf(result['output']) } };
    }
    return part;
  }

  #readText(text: string, thought: boolean, signature: string | undefined, events: TurnEvent[]): void {
    const kind = thought ? 'thought' : 'text';
    if (text !== '') {
      this.#openPart(
        kind,
        thought ? { type: 'reasoning', text: '', origin: 'google-gemini-v1' } : { type: 'text', text: '' },
        events,
      );
      events.push(this.#delta(this.#open!.part, { text }));
      if (!thought) this.#text += text;
    }
    if (signature === undefined) return;
    if (thought && this.#open?.kind === 'thought') events.push(this.#delta(this.#open.part, { signature }));
    else this.#tellSignature(signature, events);
  }

  /** Each piece of audio is base64 of its own, so the pieces are joined before decoding. */
  #readAudio(part: Extract<Part, { type: 'audio' }>, events: TurnEvent[]): void {
    const { source, ...about } = part;
    const { mediaType, data } = source as { mediaType: string; data: string };
    const empty = { kind: 'bytes' as const, mediaType, data: '' };
    this.#openPart('audio', { ...about, id: `${this.#idPrefix}_audio`, source: empty }, events);
    this.#sound ??= new Base64Joiner();
    const whole = this.#sound.push(data);
    if (whole !== '') events.push(this.#delta(this.#open!.part, { data: whole }));
  }

  #openPart(kind: 'text' | 'thought' | 'audio', part: Part, events: TurnEvent[]): void {
    this.#closeCall(events);
    if (this.#open?.kind === kind) return;
    this.#closeOpen(events);
    this.#open = { kind, part: this.#parts++ };
    events.push({ type: 'partStart', choice: this.index, index: this.#open.part, part });
  }

  /** A text's signature follows it as an empty reasoning part, because the text may continue. */
  #tellSignature(signature: string, events: TurnEvent[]): void {
    this.#tellPart({ type: 'reasoning', text: '', signature, origin: 'google-gemini-v1' }, events);
  }

  #readCall(call: Fields, signature: string | undefined, events: TurnEvent[]): void {
    if (typeof call['name'] === 'string') {
      this.#closeCall(events);
      this.#closeOpen(events);
      const part: Part = { type: 'toolCall', id: this.#callId(textOf(call['id'])), name: call['name'], arguments: '' };
      if (signature !== undefined) part.signature = { value: signature, origin: 'google-gemini-v1' };
      this.#call = { part: this.#parts++, input: { ...fieldsOf(call['args']) } };
      events.push({ type: 'partStart', choice: this.index, index: this.#call.part, part });
    }
    if (this.#call === undefined) return;
    for (const piece of listOf(call['partialArgs'])) setPath(this.#call.input, fieldsOf(piece));
    if (call['willContinue'] !== true) this.#closeCall(events);
  }

  /** Gemini may send no id, or one id for two calls, but tool results need a unique one. */
  #callId(given: string): string {
    const id = given === '' || this.#ids.has(given) ? `${this.#idPrefix}_${this.index}_${this.calls}` : given;
    this.#ids.add(id);
    this.calls += 1;
    return id;
  }

  #closeCall(events: TurnEvent[]): void {
    if (this.#call === undefined) return;
    const { part, input } = this.#call;
    this.#call = undefined;
    events.push(this.#delta(part, { arguments: stringifyJson(input) }));
    events.push({ type: 'partStop', choice: this.index, index: part });
  }

  #closeOpen(events: TurnEvent[]): void {
    if (this.#open === undefined) return;
    const { part } = this.#open;
    const rest = this.#sound?.end() ?? '';
    if (rest !== '') events.push(this.#delta(part, { data: rest }));
    this.#sound = undefined;
    this.#open = undefined;
    events.push({ type: 'partStop', choice: this.index, index: part });
  }

  /** Emits a complete part. Closes the open part first, to keep the order. */
  #tellWhole(part: Part, events: TurnEvent[]): void {
    this.#closeCall(events);
    this.#closeOpen(events);
    this.#tellPart(part, events);
  }

  #tellPart(part: Part, events: TurnEvent[]): void {
    const index = this.#parts++;
    events.push(
      { type: 'partStart', choice: this.index, index, part },
      { type: 'partStop', choice: this.index, index },
    );
  }

  #tellCitation(citation: Citation, events: TurnEvent[]): void {
    this.#openPart('text', { type: 'text', text: '' }, events);
    events.push(this.#delta(this.#open!.part, { citation }));
  }

  #delta(part: number, delta: PartDelta): TurnEvent {
    return { type: 'partDelta', choice: this.index, index: part, delta };
  }
}

/** Converts `logprobsResult` to the chat format's shape, which the conversation uses. */
function logprobsOf(result: unknown): unknown[] {
  const { chosenCandidates, topCandidates } = fieldsOf(result);
  const top = listOf(topCandidates);
  return listOf(chosenCandidates).map((entry, at) => ({
    ...tokenOf(entry),
    top_logprobs: listOf(fieldsOf(top[at])['candidates']).map(tokenOf),
  }));
}

function tokenOf(entry: unknown): Fields {
  const { token, logProbability } = fieldsOf(entry);
  const text = textOf(token);
  return { token: text, logprob: logProbability ?? 0, bytes: [...Buffer.from(text, 'utf8')] };
}

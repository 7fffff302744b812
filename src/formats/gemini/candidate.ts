/** One candidate of a streamed Gemini answer: its parts, which come in pieces without borders of their own. */
import { stringifyJson } from '../../base/json.ts';
import type { Citation, Part, PartDelta, TurnEvent } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { setPath } from './partial-arguments.ts';

/** A call whose arguments come in pieces: they can be told only when they are complete. */
interface OpenCall {
  part: number;
  input: Fields;
}

export class CandidateDecoder {
  readonly index: number;
  finishReason: string | undefined;
  calls = 0;
  private readonly responseId: string;
  private parts = 0;
  /** The part that the next piece of the same kind goes on with. */
  private open: { kind: 'text' | 'thought'; part: number } | undefined;
  private call: OpenCall | undefined;
  /** All text told so far: ranges of citations count its UTF-8 bytes. */
  private text = '';

  constructor(index: number, responseId: string) {
    this.index = index;
    this.responseId = responseId;
  }

  read(candidate: Fields): TurnEvent[] {
    const events: TurnEvent[] = [];
    for (const part of listOf(fieldsOf(candidate['content'])['parts'])) this.readPart(fieldsOf(part), events);
    for (const citation of this.citationsOf(candidate)) this.tellCitation(citation, events);
    const logprobs = listOf(fieldsOf(candidate['logprobsResult'])['chosenCandidates']);
    if (logprobs.length > 0) {
      const content = logprobs.map((entry) => {
        const { token, logProbability } = fieldsOf(entry);
        return { token, logprob: logProbability, bytes: null, top_logprobs: [] };
      });
      events.push({ type: 'logprobs', choice: this.index, logprobs: { content } });
    }
    if (typeof candidate['finishReason'] === 'string') this.finishReason = candidate['finishReason'];
    return events;
  }

  /** Stops whatever is still open. */
  close(): TurnEvent[] {
    const events: TurnEvent[] = [];
    this.closeCall(events);
    this.closeText(events);
    return events;
  }

  private readPart(part: Fields, events: TurnEvent[]): void {
    const signature = textOrUndefined(part['thoughtSignature']);
    if (isFields(part['functionCall'])) this.readCall(part['functionCall'], signature, events);
    else if (typeof part['text'] === 'string') this.readText(part['text'], part['thought'] === true, signature, events);
    else {
      const whole = mediaPart(part);
      // Code that the server runs, its result and its own tools: only their origin can read them, signature and all.
      this.tellWhole(whole ?? { type: 'opaque', origin: 'gemini', value: part }, events);
      if (whole !== undefined && signature !== undefined) this.tellSignature(signature, events);
    }
  }

  private readText(text: string, thought: boolean, signature: string | undefined, events: TurnEvent[]): void {
    const kind = thought ? 'thought' : 'text';
    if (text !== '') {
      this.closeCall(events);
      if (this.open?.kind !== kind) {
        this.closeText(events);
        this.open = { kind, part: this.parts++ };
        const part: Part = thought
          ? { type: 'reasoning', text: '', origin: 'google-gemini-v1' }
          : { type: 'text', text: '' };
        events.push({ type: 'partStart', choice: this.index, index: this.open.part, part });
      }
      events.push(this.delta(this.open.part, { text }));
      if (!thought) this.text += text;
    }
    if (signature === undefined) return;
    if (thought && this.open?.kind === 'thought') events.push(this.delta(this.open.part, { signature }));
    else this.tellSignature(signature, events);
  }

  /** A signature of a text stands behind it as reasoning that shows nothing; the text may still go on. */
  private tellSignature(signature: string, events: TurnEvent[]): void {
    this.tellPart({ type: 'reasoning', text: '', signature, origin: 'google-gemini-v1' }, events);
  }

  private readCall(call: Fields, signature: string | undefined, events: TurnEvent[]): void {
    if (typeof call['name'] === 'string') {
      this.closeCall(events);
      this.closeText(events);
      // The form may have no ids; results need one that no other call has.
      const id = textOrUndefined(call['id']) ?? `call_${this.responseId}_${this.index}_${this.calls}`;
      this.calls += 1;
      const part: Part = { type: 'toolCall', id, name: call['name'], arguments: '' };
      if (signature !== undefined) part.signature = { value: signature, origin: 'google-gemini-v1' };
      this.call = { part: this.parts++, input: { ...fieldsOf(call['args']) } };
      events.push({ type: 'partStart', choice: this.index, index: this.call.part, part });
    }
    if (this.call === undefined) return;
    for (const piece of listOf(call['partialArgs'])) setPath(this.call.input, fieldsOf(piece));
    if (call['willContinue'] !== true) this.closeCall(events);
  }

  private closeCall(events: TurnEvent[]): void {
    if (this.call === undefined) return;
    const { part, input } = this.call;
    this.call = undefined;
    events.push(this.delta(part, { arguments: stringifyJson(input) }));
    events.push({ type: 'partStop', choice: this.index, index: part });
  }

  private closeText(events: TurnEvent[]): void {
    if (this.open === undefined) return;
    events.push({ type: 'partStop', choice: this.index, index: this.open.part });
    this.open = undefined;
  }

  /** A part between others: text that was open is closed, so that the order is kept. */
  private tellWhole(part: Part, events: TurnEvent[]): void {
    this.closeCall(events);
    this.closeText(events);
    this.tellPart(part, events);
  }

  private tellPart(part: Part, events: TurnEvent[]): void {
    const index = this.parts++;
    events.push(
      { type: 'partStart', choice: this.index, index, part },
      { type: 'partStop', choice: this.index, index },
    );
  }

  private tellCitation(citation: Citation, events: TurnEvent[]): void {
    if (this.open?.kind !== 'text') {
      this.closeText(events);
      this.open = { kind: 'text', part: this.parts++ };
      events.push({ type: 'partStart', choice: this.index, index: this.open.part, part: { type: 'text', text: '' } });
    }
    events.push(this.delta(this.open.part, { citation }));
  }

  private delta(part: number, delta: PartDelta): TurnEvent {
    return { type: 'partDelta', choice: this.index, index: part, delta };
  }

  private citationsOf(candidate: Fields): Citation[] {
    const grounding = fieldsOf(candidate['groundingMetadata']);
    const chunks = listOf(grounding['groundingChunks']).map(fieldsOf);
    const citations: Citation[] = [];
    const cited = new Set<number>();
    for (const entry of listOf(grounding['groundingSupports'])) {
      const { segment, groundingChunkIndices } = fieldsOf(entry);
      for (const index of listOf(groundingChunkIndices)) {
        const chunk = typeof index === 'number' ? chunks[index] : undefined;
        if (chunk === undefined) continue;
        cited.add(index as number);
        citations.push({ ...chunkCitation(chunk), ...this.range(fieldsOf(segment)) });
      }
    }
    chunks.forEach((chunk, index) => void (cited.has(index) || citations.push(chunkCitation(chunk))));
    const metadata = fieldsOf(candidate['citationMetadata']);
    for (const entry of [...listOf(metadata['citationSources']), ...listOf(metadata['citations'])]) {
      const source = fieldsOf(entry);
      citations.push({
        ...(typeof source['uri'] === 'string' && { url: source['uri'] }),
        ...(typeof source['title'] === 'string' && { title: source['title'] }),
        ...this.range(source),
        native: { origin: 'gemini', value: source },
      });
    }
    return citations;
  }

  /** A range of UTF-8 bytes as one of characters; nothing when it lies outside the text. */
  private range(segment: Fields): { start?: number; end?: number } {
    const bytes = Buffer.from(this.text, 'utf8');
    const end = countOf(segment['endIndex']);
    if (end === 0 || end > bytes.length) return {};
    return {
      start: bytes.subarray(0, countOf(segment['startIndex'])).toString('utf8').length,
      end: bytes.subarray(0, end).toString('utf8').length,
    };
  }
}

function chunkCitation(chunk: Fields): Citation {
  const source = fieldsOf(chunk['web'] ?? chunk['maps'] ?? chunk['retrievedContext']);
  const citation: Citation = { native: { origin: 'gemini', value: chunk } };
  if (typeof source['uri'] === 'string') citation.url = source['uri'];
  if (typeof source['title'] === 'string') citation.title = source['title'];
  return citation;
}

/** A picture, a sound or a file of the answer. */
function mediaPart(part: Fields): Part | undefined {
  const { inlineData, fileData } = part;
  if (isFields(inlineData)) {
    const mediaType = textOf(inlineData['mimeType']);
    const source = { kind: 'bytes' as const, mediaType, data: textOf(inlineData['data']) };
    if (mediaType.startsWith('image/')) return { type: 'image', source };
    return mediaType.startsWith('audio/') ? { type: 'audio', source } : { type: 'file', source };
  }
  if (isFields(fileData)) return { type: 'file', source: { kind: 'url', url: textOf(fileData['fileUri']) } };
  return undefined;
}

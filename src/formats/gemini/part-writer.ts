/**
 * Writes the parts of one candidate for a client, from the events of a stream; a whole answer is a stream of whole
 * parts. Texts, thoughts and audio are written as they come; everything else once it is complete.
 */
import { inputOf } from '../conversation/call-input.ts';
import type {
  Citation,
  OpaquePart,
  Part,
  PartDelta,
  ReasoningPart,
  Source,
  ToolCallPart,
} from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { Grounding } from './encode-grounding.ts';
import { GOOGLE, sealBlock, sealCallSignature, sealReasoning } from './thought-seal.ts';

/** A part that has begun. */
interface Open {
  part: Part;
  /** Base64 of audio that is not a multiple of four characters yet. */
  rest: string;
  /** Length of the candidate's text before the part, to which ranges of its citations refer. */
  offset: number;
  /** Citations of the whole part, whose end is not known yet. */
  waiting: Citation[];
}

export class PartWriter {
  readonly grounding = new Grounding();
  readonly #thoughts: boolean;
  readonly #open = new Map<number, Open>();
  /** All text so far. */
  #text = '';

  /** @param thoughts whether the client wants to see them */
  constructor(thoughts: boolean) {
    this.#thoughts = thoughts;
  }

  start(index: number, part: Part): Fields[] {
    const { text, citations, ...begun } = part as Part & { text?: string; citations?: undefined };
    const open: Open = {
      part: { ...begun, ...(text !== undefined && { text: '' }) } as Part,
      rest: '',
      offset: this.#text.length,
      waiting: [],
    };
    this.#open.set(index, open);
    const parts = text ? this.#addText(open, text) : [];
    for (const citation of (part.type === 'text' && part.citations) || []) this.#cite(open, citation);
    if (part.type !== 'audio' || part.source?.kind !== 'bytes') return parts;
    const { data } = part.source;
    return [...parts, ...this.#addData(open, data)];
  }

  delta(index: number, delta: PartDelta): Fields[] {
    const open = this.#open.get(index);
    if (open === undefined) return [];
    const { part } = open;
    if (part.type === 'reasoning') {
      if (delta.signature !== undefined) part.signature = (part.signature ?? '') + delta.signature;
      if (delta.encrypted !== undefined) part.encrypted = (part.encrypted ?? '') + delta.encrypted;
    } else if (part.type === 'toolCall') {
      part.arguments += delta.arguments ?? '';
      if (delta.signature !== undefined && part.signature !== undefined) part.signature.value += delta.signature;
    } else if (part.type === 'opaque' && delta.value !== undefined) part.value = delta.value;
    const parts = delta.text ? this.#addText(open, delta.text) : [];
    if (delta.citation !== undefined) this.#cite(open, delta.citation);
    return delta.data === undefined ? parts : [...parts, ...this.#addData(open, delta.data)];
  }

  stop(index: number): Fields[] {
    const open = this.#open.get(index);
    this.#open.delete(index);
    return open === undefined ? [] : this.#close(open);
  }

  /** Parts that the upstream has left open. */
  left(): Fields[] {
    const parts = [...this.#open.values()].flatMap((open) => this.#close(open));
    this.#open.clear();
    return parts;
  }

  #addText({ part }: Open, text: string): Fields[] {
    if (part.type === 'reasoning') {
      part.text += text;
      return this.#thoughts ? [{ text, thought: true }] : [];
    }
    this.#text += text;
    return [{ text }];
  }

  #cite({ offset, waiting }: Open, citation: Citation): void {
    const { start = 0, end } = citation;
    if (end === undefined) waiting.push(citation);
    else this.grounding.cite({ ...citation, start: start + offset, end: end + offset }, this.#text);
  }

  /** Each piece of base64 is read on its own. */
  #addData(open: Open, data: string): Fields[] {
    const all = open.rest + data;
    const whole = all.length - (all.length % 4);
    open.rest = all.slice(whole);
    return whole === 0 ? [] : [this.#sound(open.part, all.slice(0, whole))];
  }

  #sound(part: Part, data: string): Fields {
    const source: Source | undefined = part.type === 'audio' ? part.source : undefined;
    const mediaType = source?.kind === 'bytes' && source.mediaType !== '' ? source.mediaType : 'audio/wav';
    return { inlineData: { mimeType: mediaType, data } };
  }

  #close(open: Open): Fields[] {
    const { part, rest, waiting } = open;
    for (const citation of waiting) this.#cite(open, { ...citation, end: this.#text.length - open.offset });
    switch (part.type) {
      case 'reasoning':
        return this.#signature(part);
      case 'toolCall':
        return [callOf(part)];
      case 'image':
      case 'video':
      case 'file':
        return mediumOf(part.source);
      case 'audio':
        // The format has no transcripts.
        return rest === '' ? [] : [this.#sound(part, rest)];
      case 'opaque':
        return this.#block(part);
      default:
        return [];
    }
  }

  /** The signature of a thought follows its text. Google signs a text in a part of its own. */
  #signature(part: ReasoningPart): Fields[] {
    const proof = part.signature ?? part.encrypted;
    if (part.origin === GOOGLE) {
      if (!proof) return [];
      return [{ text: '', ...(part.text !== '' && { thought: true }), thoughtSignature: proof }];
    }
    if (!proof && part.id === undefined) return [];
    return [{ text: '', thought: true, thoughtSignature: sealReasoning(part, this.#thoughts) }];
  }

  #block(part: OpaquePart): Fields[] {
    if (part.served !== undefined) this.grounding.search(part.served);
    if (part.value === undefined) return [];
    if (part.origin === 'gemini') return [part.value as Fields];
    return [{ text: '', thought: true, thoughtSignature: sealBlock(part) }];
  }
}

function callOf(part: ToolCallPart): Fields {
  const { signature } = part;
  const thoughtSignature = signature && (signature.origin === GOOGLE ? signature.value : sealCallSignature(signature));
  return {
    functionCall: { id: part.id, name: part.name, args: inputOf(part) },
    ...(thoughtSignature && { thoughtSignature }),
  };
}

function mediumOf(source: Source): Fields[] {
  if (source.kind === 'bytes') return [{ inlineData: { mimeType: source.mediaType, data: source.data } }];
  const [, mimeType, data] = source.kind === 'url' ? (/^data:([^;,]+);base64,(.*)$/s.exec(source.url) ?? []) : [];
  if (data !== undefined) return [{ inlineData: { mimeType, data } }];
  return source.kind === 'url' ? [{ fileData: { fileUri: source.url } }] : [];
}

/** Encodes the parts of messages. One instance per request, because results need the names of earlier calls. */

import { inputOf } from '../conversation/call-input.ts';
import type { AudioPart, Part, ReasoningPart, ToolCallPart, ToolResultPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { plainDocument } from '../conversation/plain-document.ts';
import type { Family } from './family.ts';
import { encodeMedium } from './media.ts';

/** The service's own placeholder for the missing signature of a call that another model made. */
export const NO_SIGNATURE = 'skip_thought_signature_validator';

/** Media types that a result may contain, from the third generation on. */
const INSIDE_RESULT = /^(image\/(png|jpeg|webp)|application\/pdf|text\/plain)$/;

interface KnownCall {
  name: string;
  /** Ordinal among all calls so far. */
  position: number;
}

export class PartEncoder {
  readonly #calls = new Map<string, KnownCall>();
  #made = 0;
  readonly #reported = new Set<string>();
  readonly #target: EncodeTarget;
  readonly #family: Family;
  readonly #losses: Losses;

  constructor(target: EncodeTarget, family: Family, losses: Losses) {
    this.#target = target;
    this.#family = family;
    this.#losses = losses;
  }

  /** Parts of a user message. */
  encodeUser(parts: readonly Part[]): Fields[] {
    return parts.flatMap((part) => this.#encodeInput(part));
  }

  /** Instructions, which may contain only text. */
  encodeTexts(parts: readonly Part[]): Fields[] {
    const other = parts.find((part) => part.type !== 'text');
    if (other !== undefined) throw new Uncarried(other.type, 'system messages can hold only text');
    return this.encodeUser(parts);
  }

  /** Parts of a model message, with signatures in their original position. */
  encodeModel(parts: readonly Part[]): Fields[] {
    const out: Fields[] = [];
    const early: string[] = [];
    let carriers = 0;
    let unsigned = this.#family.third;
    for (const part of parts) {
      if (part.type === 'reasoning') {
        const thought = this.#encodeReasoning(part);
        // Formats that separate reasoning from content place a text's signature before the text.
        if (thought !== undefined && thought['thought'] === undefined && carriers === 0)
          early.push(String(thought['thoughtSignature']));
        else if (thought !== undefined) this.#sign(out, thought);
      } else if (part.type === 'toolCall') {
        out.push(...this.#late(out, early));
        out.push(this.#encodeCall(part, unsigned));
        unsigned = false;
      } else {
        const encoded = this.#encodeOutput(part);
        carriers += encoded.length;
        out.push(...encoded);
      }
    }
    out.push(...this.#late(out, early));
    return out;
  }

  /** A signature after an image belongs to the image. Any other goes into an empty text, as the service sends it. */
  #sign(out: Fields[], thought: Fields): void {
    const last = out.at(-1);
    const bare = thought['thought'] === undefined;
    if (bare && last?.['inlineData'] !== undefined && last['thoughtSignature'] === undefined) {
      last['thoughtSignature'] = thought['thoughtSignature'];
    } else out.push(thought);
  }

  /**
   * Places signatures that came before their parts: one per part if the counts match, else after the parts. Empties the
   * list.
   */
  #late(out: readonly Fields[], early: string[]): Fields[] {
    if (early.length === 0) return [];
    const signatures = early.splice(0);
    const carriers = out.filter((part) => part['thought'] === undefined && part['thoughtSignature'] === undefined);
    if (carriers.length === signatures.length && carriers.some((part) => part['inlineData'] !== undefined)) {
      carriers.forEach((part, at) => {
        part['thoughtSignature'] = signatures[at];
      });
      return [];
    }
    return signatures.map((thoughtSignature) => ({ text: '', thoughtSignature }));
  }

  /** Results of one turn's calls, in call order: the service matches by order where it has no ids. */
  encodeResults(results: readonly ToolResultPart[]): Fields[] {
    const position = (result: ToolResultPart) => this.#calls.get(result.callId)?.position ?? Number.POSITIVE_INFINITY;
    const sorted = results.toSorted((one, other) => {
      const [first, second] = [position(one), position(other)];
      return first === second ? 0 : first - second;
    });
    return sorted.flatMap((result) => this.#encodeResult(result));
  }

  #encodeInput(part: Part): Fields[] {
    switch (part.type) {
      case 'text':
        this.#reportCitations(part.citations?.length);
        return part.text === '' ? [] : [{ text: part.text }];
      case 'refusal':
        return part.text === '' ? [] : [{ text: part.text }];
      case 'image':
        if (part.detail !== undefined && part.detail !== 'auto')
          this.#report('image_url.detail', 'the gemini format has no such field');
        return [encodeMedium(part)];
      case 'file':
        return this.#encodeFile(part);
      case 'audio':
      case 'video':
        return [encodeMedium(part)];
      case 'opaque':
        if (part.origin === 'gemini') return [fieldsOf(part.value)];
        throw new Uncarried(`${part.origin} content`, 'only the format it came from can carry it');
      default:
        throw new Uncarried(part.type, 'user messages cannot hold it');
    }
  }

  #encodeOutput(part: Part): Fields[] {
    if (part.type === 'opaque' && part.value === undefined) return [];
    if (part.type === 'opaque' && part.origin !== 'gemini') {
      this.#report(`${part.origin} blocks`, 'only the format they came from can read them');
      return [];
    }
    if (part.type === 'audio' && (part.source === undefined || isUntyped(part))) {
      this.#report('audio', 'audio of an earlier reply cannot be referenced; its transcript is sent');
      return part.transcript ? [{ text: part.transcript }] : [];
    }
    return this.#encodeInput(part);
  }

  #encodeFile(part: Extract<Part, { type: 'file' }>): Fields[] {
    if (part.citations === true) this.#report('citations', 'the gemini format cannot request document citations');
    const plain = plainDocument(part);
    if (plain !== undefined) return this.encodeUser(plain);
    return [...(part.context === undefined ? [] : [{ text: part.context }]), encodeMedium(part)];
  }

  /** A thought with its signature, or a signature alone; undefined for another vendor's reasoning. */
  #encodeReasoning(part: ReasoningPart): Fields | undefined {
    if (part.origin !== this.#target.origin) {
      if (part.text !== '' || part.signature || part.encrypted) {
        this.#report('reasoning', `this endpoint cannot read reasoning of ${part.origin}`);
      }
      return undefined;
    }
    const thoughtSignature = part.signature ?? part.encrypted;
    if (part.text === '') return thoughtSignature === undefined ? undefined : { text: '', thoughtSignature };
    return { text: part.text, thought: true, ...(thoughtSignature !== undefined && { thoughtSignature }) };
  }

  #encodeCall(part: ToolCallPart, unsigned: boolean): Fields {
    this.#calls.set(part.id, { name: part.name, position: this.#made++ });
    const own = part.signature?.origin === this.#target.origin ? part.signature.value : undefined;
    if (part.signature !== undefined && own === undefined) {
      this.#report('reasoning', `only its origin ${part.signature.origin} can read it`);
    }
    const thoughtSignature = own ?? (unsigned ? NO_SIGNATURE : undefined);
    return {
      functionCall: { id: part.id, name: part.name, args: inputOf(part) },
      ...(thoughtSignature !== undefined && { thoughtSignature }),
    };
  }

  /**
   * Text goes into `output` as a string, because the format's own numbers would lose digits of JSON objects. Media go
   * inside the result or after it.
   */
  #encodeResult(result: ToolResultPart): Fields[] {
    const known = this.#calls.get(result.callId);
    if (known === undefined) throw new Uncarried('tool results', `no call has the id ${result.callId}`);
    const texts: string[] = [];
    const inside: Fields[] = [];
    const behind: Fields[] = [];
    for (const encoded of this.encodeUser(result.parts)) {
      const inline = fieldsOf(encoded['inlineData']);
      if (typeof encoded['text'] === 'string') texts.push(encoded['text']);
      else if (this.#family.third && INSIDE_RESULT.test(String(inline['mimeType']))) inside.push(encoded);
      else behind.push(encoded);
    }
    const said = texts.length === 1 ? texts[0] : texts;
    const response = { [result.isError === true ? 'error' : 'output']: texts.length === 0 ? '' : said };
    const functionResponse: Fields = { id: result.callId, name: known.name, response };
    if (inside.length > 0) functionResponse['parts'] = inside;
    return [{ functionResponse }, ...behind];
  }

  #reportCitations(count: number | undefined): void {
    if (count) this.#report('citations', 'the gemini format does not accept citations');
  }

  #report(what: string, why: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#losses.drop(what, why);
  }
}

/** Audio of an earlier chat answer, whose type only the request for that answer named. */
function isUntyped({ source, transcript }: AudioPart): boolean {
  return source?.kind === 'bytes' && source.mediaType === 'audio' && transcript !== undefined;
}

/** Encodes parts of a conversation as content blocks of a request. */
import { inputOf } from '../conversation/call-input.ts';
import type { Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { toRedactedContent } from '../conversation/redacted-thinking.ts';
import { ToolIds, toolName } from '../conversation/tool-ids.ts';
import type { CachePoints } from './cache-points.ts';
import { DocumentNames } from './document-names.ts';
import { encodeAudio, encodeFile, encodeImage, encodeVideo } from './media.ts';

const LONGEST_CALL_ID = 64;

/** Longest tool name. */
export const LONGEST_NAME = 64;

export class BlockEncoder {
  readonly #ids = new ToolIds(LONGEST_CALL_ID);
  readonly #names = new DocumentNames();
  readonly #reported = new Set<string>();
  readonly #target: EncodeTarget;
  readonly #vendor: string | undefined;
  readonly #points: CachePoints;
  readonly #losses: Losses;

  constructor(target: EncodeTarget, vendor: string | undefined, points: CachePoints, losses: Losses) {
    this.#target = target;
    this.#vendor = vendor;
    this.#points = points;
    this.#losses = losses;
  }

  /**
   * The blocks of one message, with cache points after the blocks they mark. Parts that cannot be sent are left out.
   */
  encode(parts: readonly Part[], assistant: boolean): Fields[] {
    const blocks: Fields[] = [];
    for (const part of parts) {
      const block = this.#encodePart(part, assistant);
      if (block !== undefined) blocks.push(block, ...this.#points.after(markOf(part), 'content'));
    }
    return blocks;
  }

  /** Content that may hold only text: the system prompt. */
  encodeTexts(parts: readonly Part[]): Fields[] {
    const other = parts.find((part) => part.type !== 'text' && !isNative(part));
    if (other !== undefined) throw new Uncarried(other.type, 'system messages can hold only text');
    return this.encode(parts, false);
  }

  #encodePart(part: Part, assistant: boolean): Fields | undefined {
    switch (part.type) {
      case 'text':
        return this.#encodeText(part);
      case 'refusal':
        return this.#plainText(part.text);
      case 'reasoning':
        return this.#encodeReasoning(part);
      case 'toolCall':
        return this.#encodeCall(part);
      case 'toolResult':
        return this.#encodeResult(part);
      case 'image':
        if (assistant) throw new Uncarried('image', 'assistant messages cannot hold images');
        if (part.detail !== undefined) this.#report('image_url.detail', 'the converse format has no such field');
        return encodeImage(part);
      case 'file':
        return encodeFile(part, this.#names);
      case 'video':
        return encodeVideo(part);
      case 'audio':
        if (!assistant) return encodeAudio(part);
        this.#report('audio', 'the converse format cannot hold earlier audio; its transcript is sent');
        return this.#plainText(part.transcript ?? '');
      case 'opaque':
        if (part.origin === 'converse') return part.value as Fields;
        if (!assistant) throw new Uncarried(`${part.origin} content`, 'only the format it came from can carry it');
        this.#report(`${part.origin} blocks`, 'only the format they came from can read them');
        return undefined;
    }
  }

  /** A blank text makes the service reject the whole request, so it is left out. */
  #plainText(text: string): Fields | undefined {
    if (text.trim() !== '') return { text };
    if (text !== '') this.#report('blank text', 'the provider rejects blank texts');
    return undefined;
  }

  #encodeText(part: TextPart): Fields | undefined {
    const block = this.#plainText(part.text);
    if (block === undefined || part.citations === undefined) return block;
    const citations: unknown[] = [];
    for (const citation of part.citations) {
      if (citation.native?.origin === 'converse') citations.push(citation.native.value);
      else this.#report('citations', 'citations of another provider cannot be sent back');
    }
    return citations.length === 0 ? block : { citationsContent: { content: [block], citations } };
  }

  #encodeReasoning(part: ReasoningPart): Fields | undefined {
    // Only signed or encrypted reasoning is accepted back. A signature on an empty text counts.
    const readable = part.origin !== 'unknown' && part.origin === this.#target.origin;
    if (!readable || !(part.signature || part.encrypted)) {
      this.#report('reasoning', `this endpoint cannot read reasoning of ${part.origin}`);
      return undefined;
    }
    if (part.encrypted !== undefined) {
      return { reasoningContent: { redactedContent: toRedactedContent(part.encrypted) } };
    }
    return { reasoningContent: { reasoningText: { text: part.text, signature: part.signature } } };
  }

  #encodeCall(part: ToolCallPart): Fields {
    if (part.signature !== undefined) {
      this.#report('reasoning', `only its origin ${part.signature.origin} can read it`);
    }
    return {
      toolUse: { toolUseId: this.#ids.call(part.id), name: toolName(part.name, LONGEST_NAME), input: inputOf(part) },
    };
  }

  #encodeResult(part: ToolResultPart): Fields {
    const content: Fields[] = [];
    for (const inner of part.parts) {
      const block = this.#encodePart(inner, false);
      if (block !== undefined) content.push(block);
    }
    return {
      toolResult: { toolUseId: this.#ids.result(part.callId), content, ...this.#status(part.isError) },
    };
  }

  /** Only models of Anthropic and Amazon accept a status. */
  #status(isError: boolean | undefined): Fields {
    if (isError === undefined) return {};
    if (this.#vendor !== undefined && this.#vendor !== 'anthropic' && this.#vendor !== 'amazon') {
      if (isError) this.#report('is_error', 'the model has no status for failed tools');
      return {};
    }
    return { status: isError ? 'error' : 'success' };
  }

  #report(what: string, why: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#losses.drop(what, why);
  }
}

function isNative(part: Part): boolean {
  return part.type === 'opaque' && part.origin === 'converse';
}

/** A tool result cannot contain a cache point, so a mark inside it applies to the whole result. */
function markOf(part: Part): Part['cache'] {
  if (part.cache !== undefined || part.type !== 'toolResult') return part.cache;
  return part.parts.findLast((inner) => inner.cache !== undefined)?.cache;
}

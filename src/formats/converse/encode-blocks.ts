/** Parts of a conversation as content blocks of a request in the converse form. */
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

/** Of a tool. */
export const LONGEST_NAME = 64;

export class BlockEncoder {
  private readonly ids = new ToolIds(LONGEST_CALL_ID);
  private readonly names = new DocumentNames();
  private readonly reported = new Set<string>();
  private readonly target: EncodeTarget;
  private readonly vendor: string | undefined;
  private readonly points: CachePoints;
  private readonly losses: Losses;

  constructor(target: EncodeTarget, vendor: string | undefined, points: CachePoints, losses: Losses) {
    this.target = target;
    this.vendor = vendor;
    this.points = points;
    this.losses = losses;
  }

  /** The blocks of one message, cache points behind what they mark; parts that may not be sent leave none. */
  encode(parts: readonly Part[], assistant: boolean): Fields[] {
    const blocks: Fields[] = [];
    for (const part of parts) {
      const block = this.encodePart(part, assistant);
      if (block !== undefined) blocks.push(block, ...this.points.after(markOf(part), 'content'));
    }
    return blocks;
  }

  /** Content that may be text only: the system prompt. */
  encodeTexts(parts: readonly Part[]): Fields[] {
    const other = parts.find((part) => part.type !== 'text' && !isNative(part));
    if (other !== undefined) throw new Uncarried(other.type, 'a system message holds text only');
    return this.encode(parts, false);
  }

  private encodePart(part: Part, assistant: boolean): Fields | undefined {
    switch (part.type) {
      case 'text':
        return this.encodeText(part);
      case 'refusal':
        return this.plainText(part.text);
      case 'reasoning':
        return this.encodeReasoning(part);
      case 'toolCall':
        return this.encodeCall(part);
      case 'toolResult':
        return this.encodeResult(part);
      case 'image':
        if (assistant) throw new Uncarried('image', 'an assistant message holds no images');
        if (part.detail !== undefined) this.report('image_url.detail', 'the form has no place for it');
        return encodeImage(part);
      case 'file':
        return encodeFile(part, this.names);
      case 'video':
        return encodeVideo(part);
      case 'audio':
        if (!assistant) return encodeAudio(part);
        this.report('audio', 'the form has no place for earlier sound: its transcript is sent');
        return this.plainText(part.transcript ?? '');
      case 'opaque':
        if (part.origin === 'converse') return part.value as Fields;
        if (!assistant) throw new Uncarried(`${part.origin} content`, 'only that form can carry it');
        this.report(`${part.origin} blocks`, 'only their origin can read them');
        return undefined;
    }
  }

  /** A blank text makes the service refuse the whole request, and says nothing. */
  private plainText(text: string): Fields | undefined {
    if (text.trim() !== '') return { text };
    if (text !== '') this.report('blank text', 'the provider refuses texts of white space only');
    return undefined;
  }

  private encodeText(part: TextPart): Fields | undefined {
    const block = this.plainText(part.text);
    if (block === undefined || part.citations === undefined) return block;
    const citations: unknown[] = [];
    for (const citation of part.citations) {
      if (citation.native?.origin === 'converse') citations.push(citation.native.value);
      else this.report('citations', 'those of another provider cannot be sent back');
    }
    return citations.length === 0 ? block : { citationsContent: { content: [block], citations } };
  }

  private encodeReasoning(part: ReasoningPart): Fields | undefined {
    // Taken back is what was signed or encrypted there, and nothing else; a signed empty text counts (bug 43).
    const readable = part.origin !== 'unknown' && part.origin === this.target.origin;
    if (!readable || !(part.signature || part.encrypted)) {
      this.report('reasoning', `that of ${part.origin} cannot be read by this endpoint`);
      return undefined;
    }
    if (part.encrypted !== undefined) {
      return { reasoningContent: { redactedContent: toRedactedContent(part.encrypted) } };
    }
    return { reasoningContent: { reasoningText: { text: part.text, signature: part.signature } } };
  }

  private encodeCall(part: ToolCallPart): Fields {
    if (part.signature !== undefined) {
      this.report('reasoning', `that of ${part.signature.origin} stays with its origin`);
    }
    return {
      toolUse: { toolUseId: this.ids.call(part.id), name: toolName(part.name, LONGEST_NAME), input: inputOf(part) },
    };
  }

  private encodeResult(part: ToolResultPart): Fields {
    const content: Fields[] = [];
    for (const inner of part.parts) {
      const block = this.encodePart(inner, false);
      if (block !== undefined) content.push(block);
    }
    return {
      toolResult: { toolUseId: this.ids.result(part.callId), content, ...this.status(part.isError) },
    };
  }

  /** Only two vendors' models take it. */
  private status(isError: boolean | undefined): Fields {
    if (isError === undefined) return {};
    if (this.vendor !== undefined && this.vendor !== 'anthropic' && this.vendor !== 'amazon') {
      if (isError) this.report('is_error', 'the model cannot be told that a tool failed');
      return {};
    }
    return { status: isError ? 'error' : 'success' };
  }

  private report(what: string, why: string): void {
    if (this.reported.has(what)) return;
    this.reported.add(what);
    this.losses.drop(what, why);
  }
}

function isNative(part: Part): boolean {
  return part.type === 'opaque' && part.origin === 'converse';
}

/** Inside of a tool's result no point may stand: a mark there means the result. */
function markOf(part: Part): Part['cache'] {
  if (part.cache !== undefined || part.type !== 'toolResult') return part.cache;
  return part.parts.findLast((inner) => inner.cache !== undefined)?.cache;
}

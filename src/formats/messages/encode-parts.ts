/** Encodes parts of a conversation as content blocks of a request. */
import { inputOf } from '../conversation/call-input.ts';
import type { Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { unpacked } from '../conversation/redacted-thinking.ts';
import { ToolIds, toolName } from '../conversation/tool-ids.ts';
import type { CacheMarks } from './cache-marks.ts';
import { isReadable } from './citations.ts';
import { encodeFile, encodeImageSource } from './media.ts';
import { isOfMissingTool } from './served-calls.ts';

/** The longest tool name, in characters. */
export const LONGEST_NAME = 128;

export class BlockEncoder {
  readonly #ids = new ToolIds();
  readonly #reported = new Set<string>();
  readonly #target: EncodeTarget;
  readonly #marks: CacheMarks;
  readonly #losses: Losses;

  constructor(target: EncodeTarget, marks: CacheMarks, losses: Losses) {
    this.#target = target;
    this.#marks = marks;
    this.#losses = losses;
  }

  /** The blocks of one message; parts that must not be sent (blank text, other vendors' reasoning) yield none. */
  encode(parts: readonly Part[], assistant: boolean): Fields[] {
    const blocks: Fields[] = [];
    for (const part of parts) {
      const block = this.#encodePart(part, assistant);
      if (block !== undefined) blocks.push(block);
    }
    return blocks;
  }

  /** Encodes content that must be text: the system prompt. */
  encodeTexts(parts: readonly Part[]): Fields[] {
    const other = parts.find((part) => part.type !== 'text');
    if (other !== undefined) throw new Uncarried(other.type, 'a system message can only contain text');
    return this.encode(parts, false);
  }

  #encodePart(part: Part, assistant: boolean): Fields | undefined {
    switch (part.type) {
      case 'text':
        return this.#encodeText(part);
      case 'refusal':
        return this.#isBlank(part.text)
          ? undefined
          : { type: 'text', text: part.text, ...this.#marks.member(part.cache) };
      case 'reasoning':
        return this.#encodeReasoning(part);
      case 'toolCall':
        return this.#encodeCall(part);
      case 'toolResult':
        return this.#encodeResult(part);
      case 'image':
        if (assistant) throw new Uncarried('image', 'an assistant message cannot contain images');
        if (part.detail !== undefined) this.#report('image_url.detail', 'the messages format does not support it');
        return { type: 'image', source: encodeImageSource(part), ...this.#base(part) };
      case 'file': {
        if (part.extras?.messages?.['type'] === 'search_result') return this.#encodeSearchResult(part);
        const block = encodeFile(part, (source) => this.encode(source.parts, false));
        return { ...block, ...this.#base(part) };
      }
      case 'opaque':
        if (part.origin === 'messages') {
          if (!isOfMissingTool(fieldsOf(part.value), this.#target)) return this.#marks.native(part.value) as Fields;
          this.#report('server tool blocks', 'the provider does not have the tool');
          return undefined;
        }
        if (!assistant) throw new Uncarried(`${part.origin} content`, 'only its own format can carry it');
        this.#report(`${part.origin} blocks`, `only the ${part.origin} format can read them`);
        return undefined;
      case 'audio':
        if (assistant && part.transcript !== undefined && part.transcript !== '') {
          this.#report('audio', 'the messages format does not support audio: its transcript is sent');
          return { type: 'text', text: part.transcript };
        }
        throw new Uncarried('audio', 'the messages format does not support it');
      case 'video':
        throw new Uncarried('video', 'the messages format does not support it');
    }
  }

  #encodeText(part: TextPart): Fields | undefined {
    if (this.#isBlank(part.text)) return undefined;
    const citations: unknown[] = [];
    for (const citation of part.citations ?? []) {
      const { native } = citation;
      if (native?.origin === 'messages' && isReadable(native.value, this.#target)) citations.push(native.value);
      else this.#report('citations', 'citations of another provider cannot be sent back');
    }
    return { type: 'text', text: part.text, ...(citations.length > 0 && { citations }), ...this.#base(part) };
  }

  /** The vendor rejects a request with a text of white space only (NousResearch/hermes-agent#11929). */
  #isBlank(text: string): boolean {
    if (text.trim() !== '') return false;
    if (text !== '') this.#report('blank text', 'the provider does not accept texts of white space only');
    return true;
  }

  #encodeReasoning(part: ReasoningPart): Fields | undefined {
    const { origin } = this.#target;
    // This vendor accepts only thinking that it signed or encrypted, including signed empty thinking
    // (BerriAI/litellm#41362).
    const readable =
      part.origin === origin && (origin !== 'anthropic-claude-v1' || Boolean(part.signature || part.encrypted));
    if (!readable) {
      this.#report('reasoning', `reasoning of ${part.origin} cannot be read by this endpoint`);
      return undefined;
    }
    if (part.encrypted !== undefined) return { type: 'redacted_thinking', data: unpacked(part.encrypted) };
    return { type: 'thinking', thinking: part.text, signature: part.signature ?? '', ...part.extras?.messages };
  }

  #encodeCall(part: ToolCallPart): Fields {
    if (part.signature !== undefined)
      this.#report('reasoning', `reasoning of ${part.signature.origin} is only sent to its origin`);
    return {
      type: 'tool_use',
      id: this.#ids.call(part.id),
      name: toolName(part.name, LONGEST_NAME),
      input: inputOf(part),
      ...this.#base(part),
    };
  }

  #encodeResult(part: ToolResultPart): Fields {
    const content = this.encode(part.parts, false);
    return {
      type: 'tool_result',
      tool_use_id: this.#ids.result(part.callId),
      ...(content.length > 0 && { content }),
      ...(part.isError !== undefined && { is_error: part.isError }),
      ...this.#base(part),
    };
  }

  #encodeSearchResult(part: Extract<Part, { type: 'file' }>): Fields {
    return {
      source: part.address ?? '',
      title: part.filename ?? '',
      content: part.source.kind === 'parts' ? this.encode(part.source.parts, false) : [],
      ...(part.citations !== undefined && { citations: { enabled: part.citations } }),
      ...this.#base(part),
    };
  }

  /** Members that the conversation does not model, and the cache mark. */
  #base(part: Part): Fields {
    return { ...part.extras?.messages, ...this.#marks.member(part.cache) };
  }

  #report(what: string, why: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#losses.drop(what, why);
  }
}

/** Encodes messages as input items of a responses request, one by one in order. */
import { encodeUrl } from '../chat/content.ts';
import type {
  ImagePart,
  Message,
  Part,
  ReasoningPart,
  Source,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { documentName } from '../conversation/media-bytes.ts';
import { plainDocument } from '../conversation/plain-document.ts';
import { boundedId } from '../conversation/tool-ids.ts';
import { INSTRUCTIONS, PROMPT } from './decode.ts';
import { encodeAnnotation, IN_CONTENT } from './decode-content.ts';
import { MESSAGE } from './decode-item.ts';
import { LONGEST_ID, withoutLongId } from './item-ids.ts';

/** A model item under construction. */
interface Run {
  item: Fields;
  /** Following parts join the item if their key is equal. */
  key: string;
}

export class ItemEncoder {
  /** Whether an item holds encrypted reasoning: the request must then ask for encrypted reasoning again. */
  reasoned = false;
  readonly #items: Fields[] = [];
  readonly #customCalls = new Set<string>();
  readonly #reported = new Set<string>();
  readonly #target: EncodeTarget;
  readonly #losses: Losses;

  constructor(target: EncodeTarget, losses: Losses) {
    this.#target = target;
    this.#losses = losses;
  }

  encode(messages: readonly Message[]): Fields[] {
    for (const message of messages) {
      if (message.name !== undefined) this.#report('messages[].name', 'the responses format has no participant names');
      if (message.role === 'assistant') this.#encodeModel(message.parts);
      else this.#encodeInput(message);
    }
    return this.#items;
  }

  #encodeInput(message: Message): void {
    const { role, parts } = message;
    const about = message.extras?.responses;
    let content: Part[] = [];
    const flush = () => {
      if (content.length > 0) this.#items.push({ role, content: this.#shortest(content), ...about });
      content = [];
    };
    for (const part of parts) {
      if (part.type === 'toolResult') {
        flush();
        this.#items.push(this.#encodeResult(part));
      } else if (part.type === 'opaque' && isItem(part)) {
        flush();
        this.#items.push(part.value as Fields);
      } else content.push(part);
    }
    flush();
  }

  /** A string for a single plain text, else a list of parts. */
  #shortest(parts: readonly Part[]): string | Fields[] {
    const [only, ...others] = parts;
    if (only?.type === 'text' && others.length === 0 && only.extras?.responses === undefined) return only.text;
    return parts.flatMap((part) => this.#encodeContent(part));
  }

  #encodeContent(part: Part): Fields[] {
    const extras = part.type === 'opaque' ? undefined : part.extras?.responses;
    return this.#encodeKnown(part).map((content) => ({ ...content, ...extras }));
  }

  #encodeKnown(part: Part): Fields[] {
    switch (part.type) {
      case 'text':
        return [{ type: 'input_text', text: part.text }];
      case 'image': {
        const detail = part.detail === undefined ? {} : { detail: part.detail };
        return [{ type: 'input_image', ...mediaMembers(part.source, 'image_url', 'image'), ...detail }];
      }
      case 'file':
        return this.#encodeFile(part);
      case 'audio': {
        if (part.source?.kind !== 'bytes') throw new Uncarried('audio', 'audio must be inline data');
        const format = part.format ?? part.source.mediaType.replace(/^audio\/(x-)?/, '');
        return [{ type: 'input_audio', input_audio: { data: part.source.data, format } }];
      }
      case 'video': {
        const processing = part.processing === undefined ? {} : { processing: part.processing };
        return [{ type: 'input_video', video_url: encodeUrl(part.source, 'video'), ...processing }];
      }
      case 'opaque':
        if (part.origin === 'responses') return [part.value as Fields];
        throw new Uncarried(`${part.origin} content`, 'only the format it came from can carry it');
      default:
        throw new Uncarried(part.type, 'message content cannot hold it');
    }
  }

  #encodeFile(part: Extract<Part, { type: 'file' }>): Fields[] {
    const { source } = part;
    if (part.citations === true) this.#report('citations', 'the responses format cannot request document citations');
    const plain = plainDocument(part);
    if (plain !== undefined) return plain.flatMap((inner) => this.#encodeContent(inner));
    const context: Fields[] = part.context === undefined ? [] : [{ type: 'input_text', text: part.context }];
    // The vendor rejects file data without a filename.
    const filename = part.filename ?? (source.kind === 'bytes' ? documentName(source.mediaType) : undefined);
    const named = filename === undefined ? {} : { filename };
    if (source.kind === 'bytes')
      return [...context, { type: 'input_file', file_data: encodeUrl(source, 'file'), ...named }];
    return [...context, { type: 'input_file', ...mediaMembers(source, 'file_url', 'file'), ...named }];
  }

  #encodeResult(part: ToolResultPart): Fields {
    if (part.isError === true) this.#report('is_error', 'the responses format cannot mark a tool result as failed');
    const custom = this.#customCalls.has(part.callId);
    return {
      type: custom ? 'custom_tool_call_output' : 'function_call_output',
      call_id: this.#callId(part.callId),
      output: part.parts.length === 0 ? '' : this.#shortest(part.parts),
      ...part.extras?.responses,
    };
  }

  #encodeModel(parts: readonly Part[]): void {
    let run: Run | undefined;
    const join = (key: string, make: () => Fields): Fields => {
      if (run?.key !== key) {
        run = { key, item: make() };
        this.#items.push(run.item);
      }
      return run.item;
    };
    parts.forEach((part, index) => {
      if (part.type === 'reasoning') {
        if (!this.#takes(part, parts, index)) return;
        const item = join(reasoningKey(part, parts, index), () => reasoningItem(part));
        addReasoning(item, part);
        this.reasoned ||= part.encrypted !== undefined;
        return;
      }
      const content = this.#outputContent(part);
      if (content !== undefined) {
        const { [MESSAGE]: about } = part.extras?.responses ?? {};
        const item = join(`message ${JSON.stringify(about)}`, () => ({
          type: 'message',
          role: 'assistant',
          content: [],
          ...(about !== undefined && withoutLongId(about as Fields)),
        }));
        (item['content'] as Fields[]).push(content);
        return;
      }
      const item = this.#modelItem(part);
      if (item === undefined) return;
      run = undefined;
      this.#items.push(item);
    });
  }

  /** The content part for a model message; undefined for parts that are items of their own. */
  #outputContent(part: Part): Fields | undefined {
    switch (part.type) {
      case 'text': {
        const { [MESSAGE]: _, ...rest } = part.extras?.responses ?? {};
        return { type: 'output_text', text: part.text, annotations: annotationsOf(part), ...rest };
      }
      case 'refusal':
        return { type: 'refusal', refusal: part.text };
      case 'audio': {
        if (part.transcript === undefined || part.transcript === '') return undefined;
        this.#report('audio', 'the responses format cannot hold model audio; its transcript is sent');
        return { type: 'output_text', text: part.transcript, annotations: [] };
      }
      case 'opaque':
        return part.origin === 'responses' && !isItem(part) ? (part.value as Fields) : undefined;
      default:
        return undefined;
    }
  }

  #modelItem(part: Part): Fields | undefined {
    switch (part.type) {
      case 'toolCall':
        return this.#encodeCall(part);
      case 'image': {
        if (!isGeneratedImage(part)) throw new Uncarried('image', 'model messages cannot hold images');
        return { ...part.extras.responses, result: part.source.data };
      }
      case 'opaque':
        if (part.origin === 'responses') return part.value as Fields;
        this.#report(`${part.origin} blocks`, 'only the format they came from can read them');
        return undefined;
      case 'toolResult':
        return this.#encodeResult(part);
      default:
        throw new Uncarried(part.type, 'model messages cannot hold it');
    }
  }

  #encodeCall(part: ToolCallPart): Fields {
    if (part.signature !== undefined) this.#report('reasoning', `only its origin ${part.signature.origin} can read it`);
    const extras = part.extras?.responses && withoutLongId(part.extras.responses);
    const id = this.#callId(part.id);
    if (part.custom) {
      this.#customCalls.add(part.id);
      return { type: 'custom_tool_call', call_id: id, name: part.name, input: part.arguments, ...extras };
    }
    const written = part.arguments === '' ? '{}' : part.arguments;
    return { type: 'function_call', call_id: id, name: part.name, arguments: written, ...extras };
  }

  #callId(id: string): string {
    return boundedId(id, LONGEST_ID, this.#target.dialect.responses?.strictCallIds === true);
  }

  /** Whether the upstream can read this reasoning. Reports what it cannot. */
  #takes(part: ReasoningPart, parts: readonly Part[], index: number): boolean {
    if (part.origin !== this.#target.origin) {
      this.#report('reasoning', `this endpoint cannot read reasoning of ${part.origin}`);
      return false;
    }
    if (!this.#target.dialect.responses?.encryptedReasoningOnly) return true;
    const group = parts.filter((other) => other.type === 'reasoning' && (other === part || isOneItem(other, part)));
    const followed = parts.slice(index + 1).some((other) => other.type !== 'reasoning');
    if (followed && group.some((other) => other.type === 'reasoning' && other.encrypted !== undefined)) return true;
    this.#report('reasoning', 'the endpoint accepts only encrypted reasoning followed by another item');
    return false;
  }

  #report(what: string, why: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#losses.drop(what, why);
  }
}

/** An image from an item of this format. */
type GeneratedImage = ImagePart & { extras: { responses: Fields }; source: { kind: 'bytes' } };

export function isGeneratedImage(image: ImagePart): image is GeneratedImage {
  return image.extras?.responses !== undefined && image.source.kind === 'bytes';
}

/** Whether the opaque part is an item of its own rather than message content. */
function isItem(part: Part): boolean {
  return part.type === 'opaque' && part.origin === 'responses' && part.extras?.responses?.[IN_CONTENT] !== true;
}

/** The text for `instructions`, if the first message came from there. */
export function instructionsOf(message: Message | undefined): string | undefined {
  const [only, ...others] = message?.parts ?? [];
  const marked = message?.extras?.responses?.[INSTRUCTIONS] === true;
  return marked && only?.type === 'text' && others.length === 0 ? only.text : undefined;
}

/** The stored prompt template, if the message holds one. */
export function promptOf(message: Message): Fields | undefined {
  const [only] = message.parts;
  if (only?.type !== 'opaque' || only.origin !== 'responses') return undefined;
  const { type, ...prompt } = only.value as Fields;
  return type === PROMPT ? prompt : undefined;
}

function mediaMembers(source: Source, member: string, what: string): Fields {
  if (source.kind !== 'file') return { [member]: encodeUrl(source, what) };
  if (source.origin === 'responses' || source.origin === 'chat') return { file_id: source.id };
  throw new Uncarried(what, `the file ${source.id} belongs to another provider`);
}

function annotationsOf(part: TextPart): unknown[] {
  const list = part.citations?.map((citation) => encodeAnnotation(citation, part.text.length)) ?? [];
  return list.filter((annotation) => annotation !== undefined);
}

function isOneItem(a: ReasoningPart, b: ReasoningPart): boolean {
  return a.id !== undefined && a.id === b.id;
}

/**
 * Adjacent parts with one id form one item, until a part carries the member that ends it (encrypted content or a
 * signature).
 */
function reasoningKey(part: ReasoningPart, parts: readonly Part[], index: number): string {
  let start = index;
  for (let before = parts[start - 1]; before?.type === 'reasoning'; before = parts[start - 1]) {
    if (!isOneItem(before, part) || before.encrypted !== undefined || before.signature !== undefined) break;
    start -= 1;
  }
  return `reasoning ${start}`;
}

function reasoningItem(part: ReasoningPart): Fields {
  return { type: 'reasoning', ...(part.id !== undefined && { id: part.id }), summary: [], ...part.extras?.responses };
}

function addReasoning(item: Fields, part: ReasoningPart): void {
  const bare = part.text === '' && (part.encrypted !== undefined || part.signature !== undefined);
  if (part.summary) (item['summary'] as Fields[]).push({ type: 'summary_text', text: part.text });
  else if (!bare) {
    item['content'] = [
      ...((item['content'] as Fields[] | undefined) ?? []),
      { type: 'reasoning_text', text: part.text },
    ];
  }
  if (part.encrypted !== undefined) item['encrypted_content'] = part.encrypted;
  if (part.signature !== undefined) item['signature'] = part.signature;
}

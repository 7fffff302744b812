/** Messages of a conversation as those of a request in the cohere form, and its documents, which stand beside them. */

import { inputText } from '../conversation/call-input.ts';
import type {
  FilePart,
  Message,
  Part,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
} from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { sniffImage, withoutDataUrl } from '../conversation/media-bytes.ts';
import { PLAN } from './decode-reply.ts';

const TEXT_TYPE = /^(text\/.*|application\/(json|xml|yaml|x-yaml|javascript))$/;

export class MessageEncoder {
  readonly messages: Fields[] = [];
  /** In the order in which they stand in the conversation. */
  readonly documents: Fields[] = [];
  private readonly reported = new Set<string>();
  private readonly losses: Losses;

  constructor(losses: Losses) {
    this.losses = losses;
  }

  encode(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.name !== undefined) this.report('messages[].name', 'the cohere form has no names');
      if (message.cache !== undefined) this.reportCache();
      if (message.role === 'assistant') this.assistant(message.parts);
      else if (message.role === 'system' || message.role === 'developer') this.system(message.parts);
      else this.user(message.parts);
    }
  }

  private system(parts: readonly Part[]): void {
    const content = parts.flatMap((part) => {
      if (part.type !== 'text') throw new Uncarried(part.type, 'a system message holds text only');
      return this.text(part.text, part);
    });
    if (content.length > 0) this.messages.push({ role: 'system', content });
  }

  /** Results of tools are messages of their own; what stands between them is the user's. */
  private user(parts: readonly Part[]): void {
    let content: Fields[] = [];
    const flush = () => {
      if (content.length > 0) this.messages.push({ role: 'user', content });
      content = [];
    };
    for (const part of parts) {
      if (part.type === 'toolResult') {
        flush();
        this.messages.push(this.result(part));
      } else content.push(...this.userPart(part));
    }
    flush();
  }

  private userPart(part: Part): Fields[] {
    switch (part.type) {
      case 'text':
        return this.text(part.text, part);
      case 'image': {
        this.marked(part);
        const url = urlOf(part.source);
        return [{ type: 'image_url', image_url: { url, ...(part.detail !== undefined && { detail: part.detail }) } }];
      }
      case 'file':
        return this.file(part);
      case 'opaque':
        if (part.origin === 'cohere') return [part.value as Fields];
        throw new Uncarried(`${part.origin} content`, 'only that form can carry it');
      default:
        throw new Uncarried(part.type, 'the cohere form has no place for it');
    }
  }

  private assistant(parts: readonly Part[]): void {
    const content: Fields[] = [];
    const calls: Fields[] = [];
    let plan = '';
    for (const part of parts) {
      if (part.type === 'toolCall') calls.push(this.call(part));
      else if (part.type === 'reasoning' && part.id === PLAN) plan += part.text;
      else content.push(...this.assistantPart(part));
    }
    // The form has a plan only before calls: without them it is what the model thought.
    if (plan !== '' && calls.length === 0) content.unshift({ type: 'thinking', thinking: plan });
    if (content.length === 0 && calls.length === 0) return;
    this.messages.push({
      role: 'assistant',
      ...(content.length > 0 && { content }),
      ...(plan !== '' && calls.length > 0 && { tool_plan: plan }),
      ...(calls.length > 0 && { tool_calls: calls }),
    });
  }

  private assistantPart(part: Part): Fields[] {
    switch (part.type) {
      case 'text':
        if (part.citations !== undefined) this.report('citations', 'those of earlier answers are not sent back');
        return this.text(part.text, part);
      case 'refusal':
        return this.text(part.text, part);
      case 'reasoning':
        return this.thinking(part);
      case 'audio':
        this.report('audio', 'the form has no place for sound: its transcript is sent');
        return this.text(part.transcript ?? '', part);
      case 'opaque':
        if (part.origin === 'cohere') return [part.value as Fields];
        this.report(`${part.origin} blocks`, 'only their origin can read them');
        return [];
      default:
        throw new Uncarried(part.type, 'an assistant message has no place for it');
    }
  }

  /** Plain thinking is taken back; what was signed or encrypted elsewhere is not. */
  private thinking(part: ReasoningPart): Fields[] {
    if (part.origin === 'unknown' && part.text !== '' && part.encrypted === undefined) {
      return [{ type: 'thinking', thinking: part.text }];
    }
    this.report('reasoning', `that of ${part.origin} cannot be read by this endpoint`);
    return [];
  }

  private call(part: ToolCallPart): Fields {
    if (part.custom) throw new Uncarried('custom tools', 'the cohere form has functions only');
    if (part.signature !== undefined)
      this.report('reasoning', `that of ${part.signature.origin} stays with its origin`);
    return { id: part.id, type: 'function', function: { name: part.name, arguments: inputText(part) } };
  }

  private result(part: ToolResultPart): Fields {
    this.marked(part);
    if (part.isError === true) this.report('is_error', 'the form cannot say that a tool failed');
    const content = part.parts.flatMap((inner): Fields[] => {
      if (inner.type === 'text') return this.text(inner.text, inner);
      if (inner.type === 'file') return [{ type: 'document', document: { data: documentData(inner) } }];
      throw new Uncarried(inner.type, 'the result of a tool holds texts and documents only');
    });
    return { role: 'tool', tool_call_id: part.callId, content: content.length > 0 ? content : '' };
  }

  /** A document stands beside the messages, where the model cites it; a picture that came as a file becomes one. */
  private file(part: FilePart): Fields[] {
    this.marked(part);
    const source = withoutDataUrl(part.source);
    if (source.kind === 'bytes' && sniffImage(source.data) !== undefined) {
      return this.userPart({ type: 'image', source });
    }
    this.documents.push({ id: `doc:${this.documents.length}`, data: documentData({ ...part, source }) });
    return [];
  }

  private text(text: string, part: Part): Fields[] {
    this.marked(part);
    return text === '' ? [] : [{ type: 'text', text }];
  }

  private marked({ cache }: Part): void {
    if (cache !== undefined) this.reportCache();
  }

  reportCache(): void {
    this.report('cache_control', 'the provider caches by itself');
  }

  private report(what: string, why: string): void {
    if (this.reported.has(what)) return;
    this.reported.add(what);
    this.losses.drop(what, why);
  }
}

function urlOf(given: FilePart['source']): string {
  const source = withoutDataUrl(given);
  if (source.kind === 'url') return source.url;
  if (source.kind !== 'bytes') throw new Uncarried('image', 'an image is bytes or a URL');
  return `data:${sniffImage(source.data) ?? source.mediaType};base64,${source.data}`;
}

/** The members of a document, which are texts. */
function documentData(part: FilePart): Fields {
  return {
    ...(part.filename !== undefined && { title: part.filename }),
    text: textOfDocument(part),
    ...(part.context !== undefined && { context: part.context }),
  };
}

function textOfDocument(part: FilePart): string {
  const source = withoutDataUrl(part.source);
  if (source.kind === 'text') return source.text;
  if (source.kind === 'bytes' && TEXT_TYPE.test(source.mediaType) && !source.data.startsWith('JVBERi')) {
    return Buffer.from(source.data, 'base64').toString('utf8');
  }
  if (source.kind === 'parts') {
    const texts = source.parts.map((inner) => {
      if (inner.type === 'text') return inner.text;
      throw new Uncarried('file', 'a document holds text only');
    });
    return texts.join('\n\n');
  }
  throw new Uncarried('file', 'the cohere form takes documents of text only');
}

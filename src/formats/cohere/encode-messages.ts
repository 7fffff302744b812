/** Encodes messages for a cohere request, and collects its documents, which are outside the messages. */

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
  /** In conversation order. */
  readonly documents: Fields[] = [];
  readonly #reported = new Set<string>();
  readonly #losses: Losses;

  constructor(losses: Losses) {
    this.#losses = losses;
  }

  encode(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.name !== undefined) this.#report('messages[].name', 'the cohere format has no participant names');
      if (message.cache !== undefined) this.reportCache();
      if (message.role === 'assistant') this.#assistant(message.parts);
      else if (message.role === 'system' || message.role === 'developer') this.#system(message.parts);
      else this.#user(message.parts);
    }
  }

  #system(parts: readonly Part[]): void {
    const content = parts.flatMap((part) => {
      if (part.type !== 'text') throw new Uncarried(part.type, 'system messages can hold only text');
      return this.#text(part.text, part);
    });
    if (content.length > 0) this.messages.push({ role: 'system', content });
  }

  /** Tool results become separate messages; parts between them become user messages. */
  #user(parts: readonly Part[]): void {
    let content: Fields[] = [];
    const flush = () => {
      if (content.length > 0) this.messages.push({ role: 'user', content });
      content = [];
    };
    for (const part of parts) {
      if (part.type === 'toolResult') {
        flush();
        this.messages.push(this.#result(part));
      } else content.push(...this.#userPart(part));
    }
    flush();
  }

  #userPart(part: Part): Fields[] {
    switch (part.type) {
      case 'text':
        return this.#text(part.text, part);
      case 'image': {
        this.#marked(part);
        const url = urlOf(part.source);
        return [{ type: 'image_url', image_url: { url, ...(part.detail !== undefined && { detail: part.detail }) } }];
      }
      case 'file':
        return this.#file(part);
      case 'opaque':
        if (part.origin === 'cohere') return [part.value as Fields];
        throw new Uncarried(`${part.origin} content`, 'only the format it came from can carry it');
      default:
        throw new Uncarried(part.type, 'the cohere format cannot hold it');
    }
  }

  #assistant(parts: readonly Part[]): void {
    const content: Fields[] = [];
    const calls: Fields[] = [];
    let plan = '';
    for (const part of parts) {
      if (part.type === 'toolCall') calls.push(this.#call(part));
      else if (part.type === 'reasoning' && part.id === PLAN) plan += part.text;
      else content.push(...this.#assistantPart(part));
    }
    // The format allows a plan only before calls. Without calls it is sent as thinking.
    if (plan !== '' && calls.length === 0) content.unshift({ type: 'thinking', thinking: plan });
    if (content.length === 0 && calls.length === 0) return;
    this.messages.push({
      role: 'assistant',
      ...(content.length > 0 && { content }),
      ...(plan !== '' && calls.length > 0 && { tool_plan: plan }),
      ...(calls.length > 0 && { tool_calls: calls }),
    });
  }

  #assistantPart(part: Part): Fields[] {
    switch (part.type) {
      case 'text':
        if (part.citations !== undefined) this.#report('citations', 'citations of earlier replies are not sent back');
        return this.#text(part.text, part);
      case 'refusal':
        return this.#text(part.text, part);
      case 'reasoning':
        return this.#thinking(part);
      case 'audio':
        this.#report('audio', 'the cohere format cannot hold audio; its transcript is sent');
        return this.#text(part.transcript ?? '', part);
      case 'opaque':
        if (part.origin === 'cohere') return [part.value as Fields];
        this.#report(`${part.origin} blocks`, 'only the format they came from can read them');
        return [];
      default:
        throw new Uncarried(part.type, 'assistant messages cannot hold it');
    }
  }

  /** Plain reasoning can be sent back; reasoning signed or encrypted elsewhere cannot. */
  #thinking(part: ReasoningPart): Fields[] {
    if (part.origin === 'unknown' && part.text !== '' && part.encrypted === undefined) {
      return [{ type: 'thinking', thinking: part.text }];
    }
    this.#report('reasoning', `this endpoint cannot read reasoning of ${part.origin}`);
    return [];
  }

  #call(part: ToolCallPart): Fields {
    if (part.custom) throw new Uncarried('custom tools', 'the cohere format has only function tools');
    if (part.signature !== undefined) this.#report('reasoning', `only its origin ${part.signature.origin} can read it`);
    return { id: part.id, type: 'function', function: { name: part.name, arguments: inputText(part) } };
  }

  #result(part: ToolResultPart): Fields {
    this.#marked(part);
    if (part.isError === true) this.#report('is_error', 'the cohere format cannot mark a tool result as failed');
    const content = part.parts.flatMap((inner): Fields[] => {
      if (inner.type === 'text') return this.#text(inner.text, inner);
      if (inner.type === 'file') return [{ type: 'document', document: { data: documentData(inner) } }];
      throw new Uncarried(inner.type, 'tool results can hold only text and documents');
    });
    return { role: 'tool', tool_call_id: part.callId, content: content.length > 0 ? content : '' };
  }

  /** Documents go next to the messages, where the model can cite them. A file that is an image is sent as an image. */
  #file(part: FilePart): Fields[] {
    this.#marked(part);
    const source = withoutDataUrl(part.source);
    if (source.kind === 'bytes' && sniffImage(source.data) !== undefined) {
      return this.#userPart({ type: 'image', source });
    }
    this.documents.push({ id: `doc:${this.documents.length}`, data: documentData({ ...part, source }) });
    return [];
  }

  #text(text: string, part: Part): Fields[] {
    this.#marked(part);
    return text === '' ? [] : [{ type: 'text', text }];
  }

  #marked({ cache }: Part): void {
    if (cache !== undefined) this.reportCache();
  }

  reportCache(): void {
    this.#report('cache_control', 'the provider caches automatically');
  }

  #report(what: string, why: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#losses.drop(what, why);
  }
}

function urlOf(given: FilePart['source']): string {
  const source = withoutDataUrl(given);
  if (source.kind === 'url') return source.url;
  if (source.kind !== 'bytes') throw new Uncarried('image', 'an image must be inline data or a URL');
  return `data:${sniffImage(source.data) ?? source.mediaType};base64,${source.data}`;
}

/** The members of a document; all are strings. */
function documentData(part: FilePart): Fields {
  return {
    ...(part.filename !== undefined && { title: part.filename }),
    ...(part.address !== undefined && { source: part.address }),
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
      throw new Uncarried('file', 'a document can hold only text');
    });
    return texts.join('\n\n');
  }
  throw new Uncarried('file', 'the cohere format accepts only text documents');
}

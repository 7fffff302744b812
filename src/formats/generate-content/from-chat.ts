/** Answers of the chat format as replies and events of `generateContent`. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { countOf, type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { googleErrorOf } from './google-error.ts';
import type { ContentShape } from './request.ts';
import { GOOGLE, signatureOf } from './signature.ts';

const FINISHES: Readonly<Record<string, string>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  error: 'OTHER',
};
/** Google's own words, which are kept. */
const GOOGLE_WORDS = new Set([
  ...['STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'LANGUAGE', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
  ...['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MISSING_THOUGHT_SIGNATURE'],
  ...['MALFORMED_RESPONSE', 'MODEL_ARMOR', 'NO_IMAGE'],
  ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'IMAGE_OTHER'],
]);

/** A complete reply. */
export function contentReplyOf(reply: Fields, shape: ContentShape): Fields {
  if (!('choices' in reply)) return googleErrorOf(reply['error']);
  return {
    candidates: listOf(reply['choices']).map((value, index) => {
      const choice = fieldsOf(value);
      const writer = new PartWriter(shape);
      const message = fieldsOf(choice['message']);
      const parts = [
        ...writer.details(listOf(message['reasoning_details'])),
        ...writer.rest(message),
        ...listOf(message['tool_calls']).map((call) => writer.call(fieldsOf(call))),
        ...writer.left(),
      ];
      return candidateOf(choice, index, parts, listOf(message['annotations']));
    }),
    ...headOf(reply),
    usageMetadata: usageOf(fieldsOf(reply['usage'])),
  };
}

function headOf({ id, model, created }: Fields): Fields {
  return {
    modelVersion: model,
    responseId: id,
    ...(typeof created === 'number' && { createTime: new Date(created * 1_000).toISOString() }),
  };
}

function candidateOf(choice: Fields, index: number, parts: Fields[], annotations: unknown[]): Fields {
  const reason = finishOf(choice);
  const logprobs = logprobsOf(choice['logprobs']);
  const citations = annotations.flatMap((each) => {
    const { url, title } = fieldsOf(fieldsOf(each)['url_citation']);
    return url === undefined ? [] : [{ uri: url, title }];
  });
  return {
    content: { role: 'model', parts },
    ...(reason !== undefined && { finishReason: reason }),
    index: typeof choice['index'] === 'number' ? choice['index'] : index,
    ...(citations.length > 0 && { citationMetadata: { citations } }),
    ...(logprobs !== undefined && { logprobsResult: logprobs }),
  };
}

function finishOf({ finish_reason: reason, native_finish_reason: native }: Fields): string | undefined {
  if (typeof reason !== 'string') return undefined;
  const own = textOf(native);
  return GOOGLE_WORDS.has(own) ? own : (FINISHES[reason] ?? 'OTHER');
}

/** Thoughts are counted apart from candidates. */
function usageOf(usage: Fields): Fields {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  const cached = countOf(fieldsOf(usage['prompt_tokens_details'])['cached_tokens']);
  const thoughts = countOf(fieldsOf(usage['completion_tokens_details'])['reasoning_tokens']);
  const { cost, is_byok, cost_details } = usage;
  return {
    promptTokenCount: countOf(prompt),
    candidatesTokenCount: Math.max(countOf(completion) - thoughts, 0),
    totalTokenCount: countOf(total),
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...{ cost, is_byok, cost_details },
  };
}

function logprobsOf(logprobs: unknown): Fields | undefined {
  const content = listOf(fieldsOf(logprobs)['content']).filter(isFields);
  if (content.length === 0) return undefined;
  const shown = ({ token, logprob }: Fields) => ({ token, logProbability: logprob });
  return {
    chosenCandidates: content.map(shown),
    topCandidates: content.map((each) => ({ candidates: listOf(each['top_logprobs']).filter(isFields).map(shown) })),
  };
}

/** Writes what one choice says as parts. */
class PartWriter {
  readonly #shape: ContentShape;
  /** Signatures by the ids of their entries: of calls that are still to come, or of thoughts. */
  readonly #signatures = new Map<string, string>();
  /** The text of hidden thoughts so far, by their index: it is part of what their signature proves. */
  readonly #hidden = new Map<unknown, string>();

  constructor(shape: ContentShape) {
    this.#shape = shape;
  }

  details(entries: readonly unknown[]): Fields[] {
    return entries.flatMap((value) => this.#detail(fieldsOf(value)));
  }

  #detail(entry: Fields): Fields[] {
    const { id, index, type } = entry;
    const text = textOf(entry['text']) || textOf(entry['summary']);
    if (type === 'reasoning.encrypted' && typeof id === 'string') {
      const signature = signatureOf(entry, '');
      if (signature !== undefined) this.#signatures.set(id, signature);
      return [];
    }
    const before = this.#hidden.get(index) ?? '';
    if (!this.#shape.thoughts && text !== '') this.#hidden.set(index, before + text);
    const signature = signatureOf(entry, this.#shape.thoughts ? '' : (this.#hidden.get(index) ?? ''));
    if (text !== '' && this.#shape.thoughts) {
      return [{ text, thought: true, ...(signature !== undefined && { thoughtSignature: signature }) }];
    }
    if (signature === undefined) return [];
    // Google's signature of a text stands alone; all others are of thoughts.
    const own = entry['format'] === GOOGLE && !this.#hidden.has(index);
    return [{ text: '', ...(!own && { thought: true }), thoughtSignature: signature }];
  }

  /** Text, images and audio. */
  rest(message: Fields): Fields[] {
    const parts: Fields[] = [];
    for (const text of [textOf(message['content']), textOf(message['refusal'])]) if (text !== '') parts.push({ text });
    for (const image of listOf(message['images'])) {
      const url = textOf(fieldsOf(fieldsOf(image)['image_url'])['url']);
      const [, mimeType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
      if (data !== undefined) parts.push({ inlineData: { mimeType, data } });
      else if (url !== '') parts.push({ fileData: { fileUri: url } });
    }
    const { data } = fieldsOf(message['audio']);
    if (typeof data === 'string' && data !== '') parts.push({ inlineData: { mimeType: 'audio/wav', data } });
    return parts;
  }

  call({ id, function: called }: Fields): Fields {
    const { name, arguments: text } = fieldsOf(called);
    const signature = this.#signatures.get(textOf(id));
    this.#signatures.delete(textOf(id));
    return {
      functionCall: { id, name, args: argumentsOf(textOf(text)) },
      ...(signature && { thoughtSignature: signature }),
    };
  }

  /** Signatures that belong to no call. */
  left(): Fields[] {
    const parts = [...this.#signatures.values()].map((thoughtSignature) => ({
      text: '',
      thought: true,
      thoughtSignature,
    }));
    this.#signatures.clear();
    return parts;
  }
}

function argumentsOf(text: string): unknown {
  try {
    const value = parseJson(text);
    return isFields(value) ? value : { input: value };
  } catch {
    return text === '' ? {} : { input: text };
  }
}

interface OpenCall {
  id: unknown;
  name: string;
  text: string;
}

/** One choice of a stream. */
class Streamed {
  readonly writer: PartWriter;
  readonly calls: OpenCall[] = [];

  constructor(shape: ContentShape) {
    this.writer = new PartWriter(shape);
  }

  /** The format has no pieces of calls: each is written once it is complete. */
  flush(): Fields[] {
    const calls = this.calls
      .splice(0)
      .map(({ id, name, text }) => this.writer.call({ id, function: { name, arguments: text } }));
    return [...calls, ...this.writer.left()];
  }
}

/** How a stream is written. */
export interface Framing {
  event(json: string): string;
  /** A comment, which keeps the connection alive. */
  comment(text: string): string;
}

/** Converts the events of one chat stream. */
export class ContentStream {
  readonly #shape: ContentShape;
  readonly #framing: Framing;
  readonly #choices = new Map<number, Streamed>();

  constructor(shape: ContentShape, framing: Framing) {
    this.#shape = shape;
    this.#framing = framing;
  }

  /** @param text complete events of the chat format, possibly with comments */
  rewrite(text: string): string {
    return text
      .split('\n\n')
      .map((event) => this.#event(event))
      .join('');
  }

  #event(event: string): string {
    if (event.startsWith(':')) return this.#framing.comment(event);
    if (!event.startsWith('data: {')) return '';
    const chunk = JSON.parse(event.slice('data: '.length)) as Fields;
    if (isFields(chunk['error'])) return this.#framing.event(stringifyJson(googleErrorOf(chunk['error'])));
    const candidates = listOf(chunk['choices']).flatMap((value) => this.#choice(fieldsOf(value)));
    const usage = isFields(chunk['usage']) ? { usageMetadata: usageOf(chunk['usage']) } : {};
    if (candidates.length === 0 && !('usageMetadata' in usage)) return '';
    return this.#framing.event(
      stringifyJson({ ...(candidates.length > 0 && { candidates }), ...usage, ...headOf(chunk) }),
    );
  }

  #choice(choice: Fields): Fields[] {
    const index = countOf(choice['index']);
    const held = this.#choices.get(index) ?? new Streamed(this.#shape);
    this.#choices.set(index, held);
    const delta = fieldsOf(choice['delta']);
    const parts = [...held.writer.details(listOf(delta['reasoning_details'])), ...held.writer.rest(delta)];
    for (const value of listOf(delta['tool_calls'])) {
      const { index: at, id, function: called } = fieldsOf(value);
      const { name, arguments: text } = fieldsOf(called);
      if (typeof name === 'string') {
        held.calls.push({ id, name, text: textOf(text) });
      } else {
        const call = held.calls[countOf(at)] ?? held.calls.at(-1);
        if (call !== undefined) call.text += textOf(text);
      }
    }
    const ends = finishOf(choice) !== undefined;
    if (ends) parts.push(...held.flush());
    const annotations = listOf(delta['annotations']);
    if (parts.length === 0 && !ends && annotations.length === 0 && logprobsOf(choice['logprobs']) === undefined)
      return [];
    return [candidateOf(choice, index, parts, annotations)];
  }
}

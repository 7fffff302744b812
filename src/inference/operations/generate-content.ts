/**
 * The Gemini API's `models/{model}:generateContent` and `:streamGenerateContent`, on top of the chat format (decision 025):
 * the request goes through the pipeline as a chat request, and its answer is rewritten on the way to the client.
 */
import { Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, readDocument, stringifyJson } from '../../base/json.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import {
  ContentEvents,
  ContentReply,
  type ContentShape,
  ContentStream,
  chatRequestOf,
  contentReplyOf,
  contentSchema,
  type Framing,
  GoogleErrorSchema,
  googleError,
  inOwnWords,
} from '../../formats/generate-content/index.ts';
import { chat } from '../../formats/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { documentCheck } from '../../http/validate.ts';
import type { Generation } from '../../spend/index.ts';
import type { Sink } from '../answer/sink.ts';
import type { InferenceParts } from '../parts.ts';
import { serve } from '../serve.ts';
import { acceptExchange } from './accept-exchange.ts';
import { countTokensOf } from './count-tokens.ts';
import { INFERENCE_ERRORS } from './event-schema.ts';
import { HttpSink } from './http-sink.ts';

const STREAM = 'streamGenerateContent';
const COUNT = 'countTokens';
const METHODS = ['generateContent', STREAM, COUNT];
/** Google's clients put the key into the query where they cannot set headers. */
const Query = Type.Object({
  alt: Type.Optional(Type.String({ description: '`sse`: a stream of events; otherwise a list of JSON' })),
  key: Type.Optional(Type.String({ description: 'The key, instead of a header' })),
});

/** Below `/v1`, which Google's clients use by default, and `/v1beta`. @param bodyBytes the largest body */
export function contentOperations(parts: InferenceParts, bodyBytes: number): Operation<Caller>[] {
  const common = {
    method: 'POST',
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    keyInQuery: true,
    query: Query,
    body: { schema: contentSchema, maxBytes: bodyBytes },
    replies: {
      200: {
        description: 'The reply; `streamGenerateContent` sends several, as events or as a list',
        schema: ContentReply,
        events: ContentEvents,
      },
    },
    errors: INFERENCE_ERRORS,
    errorSchema: GoogleErrorSchema,
    encodeError: googleError,
  } as const;
  const whole = {
    ...common,
    params: Type.Object({ model: Type.String() }),
    handle: (exchange: Exchange<Caller>) => answer(exchange, exchange.params['model']!, parts),
  };
  const parted = {
    ...common,
    params: Type.Object({ author: Type.String(), model: Type.String() }),
    handle: (exchange: Exchange<Caller>) =>
      answer(exchange, `${exchange.params['author']}/${exchange.params['model']}`, parts),
  };
  const summary =
    'Generate content (Gemini format); the path ends with `:generateContent`, `:streamGenerateContent` or `:countTokens`';
  const ofAuthor = 'The same for a model whose name has a slash';
  return [
    { ...whole, id: 'generateContent', path: '/models/{model}', summary },
    { ...parted, id: 'generateContentOfAuthor', path: '/models/{author}/{model}', summary: ofAuthor },
    { ...whole, id: 'generateContentBeta', path: '/v1beta/models/{model}', root: true, summary },
    {
      ...parted,
      id: 'generateContentOfAuthorBeta',
      path: '/v1beta/models/{author}/{model}',
      root: true,
      summary: ofAuthor,
    },
  ];
}

/** Compiled with the first request. */
let checkSchema: ReturnType<typeof documentCheck> | undefined;

function checkedAsChat(document: JsonDocument): void {
  checkSchema ??= documentCheck(chat.schema);
  checkSchema(document);
}

/** @param target `<model>:<method>` */
function answer(exchange: Exchange<Caller>, target: string, parts: InferenceParts): Promise<void> {
  const colon = target.lastIndexOf(':');
  const method = target.slice(colon + 1);
  if (colon < 1 || !METHODS.includes(method)) {
    throw new GatewayError('not_found', `the method of a model must be one of ${METHODS.join(', ')}`);
  }
  if (method === COUNT) return count(exchange, target.slice(0, colon), parts);
  const stream = method === STREAM;
  const { body, shape } = chatRequestOf(exchange.document!.exact, target.slice(0, colon), stream);
  const document = readDocument(Buffer.from(stringifyJson(body)));
  const request = inOwnWords(() => {
    checkedAsChat(document);
    return acceptExchange(exchange, chat, parts, document);
  });
  const sink = stream && exchange.query['alt'] !== 'sse' ? new ListSink(exchange) : new HttpSink(exchange);
  return serve(request, new ContentSink(sink, shape), parts);
}

async function count(exchange: Exchange<Caller>, model: string, parts: InferenceParts): Promise<void> {
  const { body } = chatRequestOf(exchange.document!.exact, model, false);
  const asChat = readDocument(Buffer.from(stringifyJson(body)));
  inOwnWords(() => checkedAsChat(asChat));
  const { input_tokens, estimated } = await countTokensOf(chat, asChat, 'contents', exchange, parts);
  exchange.reply(200, { totalTokens: input_tokens, ...(estimated && { estimated }) });
}

const COMMA = ',\r\n';
const LIST: Framing = { event: (json) => COMMA + json, comment: () => '' };
const EVENTS: Framing = { event: (json) => `data: ${json}\r\n\r\n`, comment: (text) => `${text}\r\n\r\n` };

/** A stream as one list of JSON. */
class ListSink extends HttpSink {
  #begun = false;

  override open(headers: Record<string, string>): void {
    super.open({ ...headers, 'content-type': 'application/json; charset=utf-8' });
  }

  /** @param text elements, each after a comma */
  override write(text: string): boolean {
    const first = !this.#begun;
    this.#begun = true;
    return super.write(first ? `[${text.slice(COMMA.length)}` : text);
  }

  override end(): void {
    super.write(this.#begun ? ']' : '[]');
    super.end();
  }
}

/** Rewrites replies of the chat format. */
class ContentSink implements Sink {
  readonly #sink: Sink;
  readonly #shape: ContentShape;
  readonly #stream: ContentStream;

  constructor(sink: HttpSink, shape: ContentShape) {
    this.#sink = sink;
    this.#shape = shape;
    this.#stream = new ContentStream(shape, sink instanceof ListSink ? LIST : EVENTS);
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  reply(status: number, headers: Record<string, string>, body: WholeBody): void {
    const reply = JSON.parse(String(body)) as Record<string, unknown>;
    this.#sink.reply(status, headers, stringifyJson(contentReplyOf(reply, this.#shape)));
  }

  open(headers: Record<string, string>): void {
    this.#sink.open(headers);
  }

  write(text: string): boolean {
    const rewritten = this.#stream.rewrite(text);
    return rewritten === '' || this.#sink.write(rewritten);
  }

  end(): void {
    this.#sink.end();
  }

  entered(row: Generation): void {
    this.#sink.entered?.(row);
  }

  onDrain(run: () => void): void {
    this.#sink.onDrain(run);
  }

  onClose(run: () => void): void {
    this.#sink.onClose(run);
  }
}

/** `POST /completions` and `POST /messages/count_tokens`: what tools of the two ecosystems call besides their main operation. */
import { Type } from 'typebox';
import type { Caller } from '../access/index.ts';
import { type JsonDocument, readDocument, stringifyJson } from '../base/json.ts';
import {
  CompletionReply,
  type CompletionShape,
  CompletionStream,
  chatRequestOf,
  completionOf,
  completionSchema,
  needsNative,
  prefersNative,
} from '../formats/completion/index.ts';
import { chat, messages } from '../formats/index.ts';
import type { WholeBody } from '../formats/single/index.ts';
import { policyOf } from '../guardrails/index.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import type { Generation } from '../spend/index.ts';
import { ANTHROPIC_REQUEST_ID } from './answer-headers.ts';
import { countTokens } from './count-tokens.ts';
import { CompletionEvents, INFERENCE_ERRORS, MessagesErrorSchema } from './event-schema.ts';
import { HttpSink } from './http-sink.ts';
import type { InferenceParts } from './parts.ts';
import type { InferenceRequest } from './request.ts';
import type { Sink } from './sink.ts';

interface Ways {
  /** Runs a conversation of the chat form to its end, with another sink than the exchange's own. */
  answer(exchange: Exchange<Caller>, document: JsonDocument, sink: Sink): Promise<void>;
  /** Runs the exchange's body as it is, at services that have the operation. */
  complete(exchange: Exchange<Caller>): Promise<void>;
  /** The exchange's body as a request of the messages form, checked. */
  asMessages(exchange: Exchange<Caller>): InferenceRequest;
}

interface CompanionLimits {
  inferenceBodyBytes: number;
}

export function companionOperations(
  parts: InferenceParts,
  limits: CompanionLimits,
  { answer, complete, asMessages }: Ways,
): Operation<Caller>[] {
  return [
    {
      id: 'createCompletion',
      method: 'POST',
      path: '/completions',
      summary: 'Continue a text: the older form of chat completions, streamed or not',
      tag: 'Inference',
      access: 'inference',
      body: { schema: completionSchema, maxBytes: limits.inferenceBodyBytes },
      replies: {
        200: {
          description: 'The text, or an event stream when `stream` is true',
          schema: CompletionReply,
          events: CompletionEvents,
        },
      },
      errors: INFERENCE_ERRORS,
      handle(exchange) {
        if (goesNative(exchange.document!, exchange.caller!, parts)) return complete(exchange);
        const { body, shape } = chatRequestOf(exchange.document!.exact);
        const document = readDocument(Buffer.from(stringifyJson(body)));
        return answer(exchange, document, new CompletionSink(new HttpSink(exchange), shape));
      },
      encodeError: (error, { caller }) =>
        chat.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
    },
    {
      id: 'countMessageTokens',
      method: 'POST',
      path: '/messages/count_tokens',
      requestIdHeader: ANTHROPIC_REQUEST_ID,
      summary: 'How many tokens a conversation of the messages form has, by its provider or as an estimate; free',
      tag: 'Inference',
      access: 'inference',
      body: { schema: messages.schema, maxBytes: limits.inferenceBodyBytes },
      replies: {
        200: {
          description: 'The count',
          schema: Type.Object(
            {
              input_tokens: Type.Integer({ minimum: 0 }),
              estimated: Type.Optional(
                Type.Literal(true, { description: 'The provider counts nothing for us; taken from the length' }),
              ),
            },
            { $id: 'MessageTokens' },
          ),
        },
      },
      errors: INFERENCE_ERRORS,
      errorSchema: MessagesErrorSchema,
      async handle(exchange) {
        exchange.reply(200, await countTokens(asMessages(exchange), exchange, parts));
      },
      encodeError: (error, { caller }) =>
        messages.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
    },
  ];
}

/** Whether the request goes out as it is; one for a model that nobody knows is refused where it is routed. */
function goesNative(document: JsonDocument, caller: Caller, parts: InferenceParts): boolean {
  // Answers that are looked through are conversations: what no conversation can say is refused.
  if (policyOf(caller).prescription.answerFilters !== undefined) return false;
  const body = document.value;
  const needed = needsNative(body);
  if (!needed && !prefersNative(body)) return false;
  const model = parts.catalog().find(String(document.member('model')));
  if (model === undefined) return needed;
  const adapters = model.endpoints.map(({ provider }) => provider.kind.completion);
  return adapters.some((adapter) => (needed ? adapter !== undefined : adapter?.able?.includes('echo')));
}

/** Writes what the chat form says in the older one. */
class CompletionSink implements Sink {
  readonly #sink: Sink;
  readonly #shape: CompletionShape;
  readonly #stream: CompletionStream;

  constructor(sink: Sink, shape: CompletionShape) {
    this.#sink = sink;
    this.#shape = shape;
    this.#stream = new CompletionStream(shape);
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  reply(status: number, headers: Record<string, string>, body: WholeBody): void {
    const reply = JSON.parse(String(body)) as Record<string, unknown>;
    this.#sink.reply(status, headers, stringifyJson(completionOf(reply, this.#shape)));
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

/** `POST /completions` and `POST /messages/count_tokens`, further operations that OpenAI and Anthropic tools call. */
import { Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { type JsonDocument, readDocument, stringifyJson } from '../../base/json.ts';
import {
  CompletionReply,
  type CompletionShape,
  CompletionStream,
  chatRequestOf,
  completion,
  completionOf,
  completionSchema,
  needsNative,
  prefersNative,
} from '../../formats/completion/index.ts';
import { listOf } from '../../formats/conversation/fields.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import { chat, messages } from '../../formats/index.ts';
import { policyOf } from '../../guardrails/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import type { Operation } from '../../http/operation.ts';
import type { Generation } from '../../spend/index.ts';
import type { Sink } from '../answer/sink.ts';
import type { InferenceParts } from '../parts.ts';
import { withPluginSettings } from '../plugins/index.ts';
import { serve } from '../serve.ts';
import { acceptExchange } from './accept-exchange.ts';
import { countTokens } from './count-tokens.ts';
import { CompletionEvents, INFERENCE_ERRORS } from './event-schema.ts';
import { HttpSink } from './http-sink.ts';

interface CompanionLimits {
  inferenceBodyBytes: number;
}

export function companionOperations(parts: InferenceParts, limits: CompanionLimits): Operation<Caller>[] {
  return [
    {
      id: 'createCompletion',
      method: 'POST',
      path: '/completions',
      summary: 'Complete a text (legacy), streamed or not',
      tag: 'Inference',
      access: INFERENCE,
      anyText: true,
      anyQuery: true,
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
        const sink = new HttpSink(exchange);
        if (isServedNatively(exchange.document!, exchange.caller!, parts)) {
          return serve(acceptExchange(exchange, completion, parts), sink, parts);
        }
        const { body, shape } = chatRequestOf(exchange.document!.exact);
        const document = readDocument(Buffer.from(stringifyJson(body)));
        return serve(acceptExchange(exchange, chat, parts, document), new CompletionSink(sink, shape), parts);
      },
      encodeError: (error, { caller }) =>
        chat.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
    },
    {
      id: 'countMessageTokens',
      method: 'POST',
      path: '/messages/count_tokens',
      requestIdHeader: messages.operation.requestIdHeader!,
      summary: 'Count the tokens of a messages request, by its provider or as an estimate; free of charge',
      tag: 'Inference',
      access: INFERENCE,
      anyText: true,
      anyQuery: true,
      body: {
        schema: messages.schema,
        described: withPluginSettings(messages.schema),
        maxBytes: limits.inferenceBodyBytes,
      },
      replies: {
        200: {
          description: 'The count',
          schema: Type.Object(
            {
              input_tokens: Type.Integer({ minimum: 0 }),
              estimated: Type.Optional(
                Type.Literal(true, { description: 'The provider cannot count tokens; estimated from the length' }),
              ),
            },
            { $id: 'MessageTokens' },
          ),
        },
      },
      errors: INFERENCE_ERRORS,
      errorSchema: messages.operation.errorSchema!,
      async handle(exchange) {
        exchange.reply(200, await countTokens(acceptExchange(exchange, messages, parts), exchange, parts));
      },
      encodeError: (error, { caller }) =>
        messages.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
    },
  ];
}

/** Whether the request is sent unchanged. An unknown model is refused by routing. */
function isServedNatively(document: JsonDocument, caller: Caller, parts: InferenceParts): boolean {
  const body = document.value;
  // Filters and plugins work on conversations, so what a conversation cannot express is refused.
  if (policyOf(caller).compiled.answerFilters !== undefined || listOf(body['plugins']).length > 0) return false;
  const needed = needsNative(body);
  if (!needed && !prefersNative(body)) return false;
  const model = parts.catalog().find(String(document.member('model')));
  if (model === undefined) return needed;
  const adapters = model.endpoints.map(({ provider }) => provider.kind.completion);
  return adapters.some((adapter) => (needed ? adapter !== undefined : adapter?.able?.includes('echo')));
}

/** Rewrites replies of the chat format in the completions format. */
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

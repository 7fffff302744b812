/** `POST /systemone`, on top of the chat format: any model with structured output decides. */
import type { Caller } from '../../access/index.ts';
import { readDocument, stringifyJson } from '../../base/json.ts';
import {
  chatRequestOf,
  DecisionReply,
  decisionOf,
  decisionSchema,
  type Questions,
} from '../../formats/decision/index.ts';
import type { WholeBody } from '../../formats/direct/index.ts';
import { chat } from '../../formats/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { documentCheck } from '../../http/validate.ts';
import type { Generation } from '../../spend/index.ts';
import type { Sink } from '../answer/sink.ts';
import type { InferenceParts } from '../parts.ts';
import { serve } from '../serve.ts';
import { acceptExchange } from './accept-exchange.ts';
import { INFERENCE_ERRORS } from './event-schema.ts';
import { HttpSink } from './http-sink.ts';

/** @param bodyBytes the largest body */
export function decisionOperations(parts: InferenceParts, bodyBytes: number): Operation<Caller>[] {
  const common = {
    method: 'POST',
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    body: { schema: decisionSchema, maxBytes: bodyBytes },
    replies: { 200: { description: 'The answers', schema: DecisionReply } },
    errors: INFERENCE_ERRORS,
    handle: (exchange: Exchange<Caller>) => decide(exchange, parts),
    encodeError: (error, { caller }) =>
      chat.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  } satisfies Partial<Operation<Caller>>;
  return [
    {
      ...common,
      id: 'createSystemOne',
      path: '/systemone',
      summary: 'Answer typed questions about a state: an option, a level, or the probability of yes',
    },
    {
      ...common,
      id: 'createDecision',
      path: '/api/alpha/decisions',
      root: true,
      summary: 'Older path of `POST /systemone`',
    },
  ];
}

/** Compiled with the first request. */
let checkSchema: ReturnType<typeof documentCheck> | undefined;

function decide(exchange: Exchange<Caller>, parts: InferenceParts): Promise<void> {
  const { body, questions } = chatRequestOf(exchange.document!.exact);
  const document = readDocument(Buffer.from(stringifyJson(body)));
  checkSchema ??= documentCheck(chat.schema);
  checkSchema(document);
  return serve(
    acceptExchange(exchange, chat, parts, document),
    new DecisionSink(new HttpSink(exchange), questions),
    parts,
  );
}

/** Rewrites the reply of the chat format, which is never a stream. */
class DecisionSink implements Sink {
  readonly #sink: HttpSink;
  readonly #questions: Questions;

  constructor(sink: HttpSink, questions: Questions) {
    this.#sink = sink;
    this.#questions = questions;
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  reply(status: number, headers: Record<string, string>, body: WholeBody): void {
    const reply = JSON.parse(String(body)) as Record<string, unknown>;
    const told = status === 200 ? decisionOf(reply, this.#questions) : reply;
    this.#sink.reply(status, headers, stringifyJson(told));
  }

  open(headers: Record<string, string>): void {
    this.#sink.open(headers);
  }

  write(text: string): boolean {
    return this.#sink.write(text);
  }

  end(): void {
    this.#sink.end();
  }

  entered(row: Generation): void {
    this.#sink.entered(row);
  }

  onDrain(run: () => void): void {
    this.#sink.onDrain(run);
  }

  onClose(run: () => void): void {
    this.#sink.onClose(run);
  }
}

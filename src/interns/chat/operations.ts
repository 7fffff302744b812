/** The chat with an intern, and the prompt without a reader. */
import type { Caller } from '../../access/index.ts';
import type { GatewayError } from '../../base/errors.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { encodeInternError } from '../errors.ts';
import { runningIntern } from '../intern.ts';
import { ACCESS_TO_ONE, existingIntern, type InternParts } from '../operations.ts';
import type { InternRuntime } from '../runtime.ts';
import * as intern from '../schema.ts';
import type { ChatSink } from './chunks.ts';
import { checkedPrompt, readChatRequest } from './request.ts';
import * as schema from './schema.ts';
import { checkOwnSession } from './sessions.ts';

export interface ChatOperationParts extends InternParts {
  runtime: InternRuntime;
}

const common = {
  tag: 'Interns',
  access: ACCESS_TO_ONE,
  params: intern.InternParams,
  errorSchema: intern.InternErrorSchema,
  encodeError: encodeInternError('bad_request') as (error: GatewayError) => unknown,
} as const;

/** Reads `parts` only while handling a request. */
export function chatOperations(parts: ChatOperationParts): Operation<Caller>[] {
  return [chat(parts), invoke(parts)];
}

function chat(parts: ChatOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'createInternChatCompletion',
    anyQuery: true,
    method: 'POST',
    path: '/interns/{internId}/chat/completions',
    summary: 'Talk to an intern: a prompt, an answer to its question, or a message for a turn that runs',
    body: { schema: schema.ChatBodySchema, maxBytes: intern.BODY_BYTES },
    errors: [409, 410, 429, 502, 504],
    replies: {
      200: {
        description: 'What the intern says, until it is done or asks',
        schema: schema.ChunkSchema,
        contentType: 'text/event-stream',
      },
      202: { description: 'The message was added to the turn that runs', schema: schema.SteeredReply },
    },
    async handle(exchange) {
      const { confirmProgramme, runtime } = parts;
      const caller = callerOf(exchange);
      const { running, request } = await runtime.turnstile.pass(async () => {
        await confirmProgramme(exchange.caller);
        const request = readChatRequest(exchange.body as schema.ChatBody);
        const running = runningIntern(await existingIntern(exchange, parts));
        const { sessionId } = request;
        if (sessionId !== null) await checkOwnSession(parts, { internId: running.id, sessionId }, caller, true);
        return { running, request };
      });
      await runtime.respond(running, request, caller, new HttpChatSink(exchange));
    },
  };
}

function invoke(parts: ChatOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'invokeIntern',
    method: 'POST',
    path: '/interns/{internId}/invoke',
    summary: 'Give an intern a prompt and do not wait for what it says',
    body: { schema: schema.InvokeBodySchema, maxBytes: intern.BODY_BYTES },
    errors: [409, 410, 429, 502, 504],
    replies: {
      202: {
        description: 'The run has started, or the message was added to the turn that runs',
        schema: schema.InvokedReply,
      },
    },
    async handle(exchange) {
      await parts.confirmProgramme(exchange.caller);
      const { input, session_id = null } = exchange.body as schema.InvokeBody;
      const text = checkedPrompt('input', input);
      const running = runningIntern(await existingIntern(exchange, parts));
      const caller = callerOf(exchange);
      if (session_id !== null) await checkOwnSession(parts, { internId: running.id, sessionId: session_id }, caller);
      exchange.reply(202, await parts.runtime.invoke(running, session_id, text, caller));
    },
  };
}

function callerOf({ caller }: Exchange<Caller>): string {
  return caller.userId ?? caller.keyId;
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  // Reverse proxies would buffer events otherwise.
  'x-accel-buffering': 'no',
};

class HttpChatSink implements ChatSink {
  readonly #exchange: Exchange<Caller>;

  constructor(exchange: Exchange<Caller>) {
    this.#exchange = exchange;
  }

  get closed(): boolean {
    return this.#exchange.closed;
  }

  reply(status: number, body: object): void {
    this.#exchange.reply(status, body);
  }

  open(): void {
    this.#exchange.response.writeHead(200, STREAM_HEADERS);
  }

  write(text: string): boolean {
    return this.closed || this.#exchange.response.writePiece(text);
  }

  end(): void {
    if (!this.closed) this.#exchange.response.end();
  }

  onDrain(run: () => void): void {
    this.#exchange.response.on('drain', run);
  }

  onClose(run: () => void): void {
    this.#exchange.onClose(run);
  }
}

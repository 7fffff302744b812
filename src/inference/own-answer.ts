/**
 * An answer without a turn of the model: calls of an earlier answer, which this request has continued, wait for
 * functions of the client again. Its row has the cost of the tools; requests that the tools have made have rows of
 * their own.
 */
import type { Part } from '../formats/conversation/conversation.ts';
import type { Closing, Stamp } from '../formats/conversation/format.ts';
import { type Generation, unansweredRow } from '../spend/index.ts';
import type { Metered } from './accounting/meter.ts';
import { acceptedOf } from './accounting/record.ts';
import { screenOf } from './admission/guardrails.ts';
import { settleTokens } from './admission/rate-limits.ts';
import { ClientAnswer } from './answer/client-answer.ts';
import { faultOf, unservedStamp } from './answer/error-response.ts';
import { notifyEnded } from './answer/listener.ts';
import { headersOf } from './answer/response-headers.ts';
import { Transcript } from './answer/transcript.ts';
import type { RequestContext } from './context.ts';
import type { InferenceParts } from './parts.ts';
import type { ConversationRequest } from './request.ts';
import type { Task } from './task.ts';
import { wholeFrom } from './turns/translate.ts';

/**
 * Resolves once the client has its answer or has disconnected, and the row is settled.
 * @throws GatewayError 403 when a guardrail filter blocks the answer, 503 if the journal cannot be written
 */
export async function sendOwnAnswer(
  context: RequestContext<ConversationRequest>,
  task: Task,
  content: readonly Part[],
  parts: InferenceParts,
): Promise<void> {
  const { echo } = task;
  const stamp: Stamp = { ...unservedStamp(context.request), ...(echo && { echo }) };
  const answer = answerOf(content, context, stamp, parts);
  const prepaid = context.prepaying(parts);
  const generation = await prepaid.open();
  context.hasRow = true;
  const { metered } = prepaid.tools;
  const row = rowOf(context, task, metered, Math.round(parts.clock.now() - context.request.startedAt));
  settleTokens(context, row);
  context.sink.entered?.(row, metered);
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const closing: Closing = {
    completed: Math.floor(parts.clock.now() / 1000),
    ...(metered && { usage: metered.usage, cost: metered.cost }),
  };
  generation.settle(row, () => resolve(faultOf(() => send(context, answer, { stamp, closing }, parts))));
  const fault = await promise;
  const { listeners } = context;
  if (listeners) notifyEnded(listeners, { row, transcript: answer.transcript, error: null }, parts.log);
  if (fault !== undefined) throw fault;
}

function answerOf(
  content: readonly Part[],
  context: RequestContext<ConversationRequest>,
  stamp: Stamp,
  parts: InferenceParts,
): ClientAnswer {
  const { request, logged } = context;
  const { format: served, facts } = request;
  const screen = screenOf(request, parts);
  const transcript = logged && new Transcript(logged);
  const answer = new ClientAnswer({ served, stamp, stream: facts.stream, screen, transcript });
  answer.begin();
  const finish = { unified: 'tool_calls', native: null } as const;
  answer.reply(wholeFrom(served, { choices: [{ parts: [...content], finish }] }));
  context.addHits(answer.hits);
  return answer;
}

function rowOf(context: RequestContext, { apiType }: Task, metered: Metered | undefined, took: number): Generation {
  const { facts } = context.request;
  const left = context.sink.closed;
  return {
    ...unansweredRow(acceptedOf(context, apiType), facts.model ?? facts.fallbackModels[0] ?? ''),
    status: left ? null : 200,
    cancelled: left,
    finishReason: left ? null : 'tool_calls',
    estimated: metered?.estimated ?? false,
    usage: metered?.usage ?? null,
    costNano: metered?.costNano ?? 0n,
    latencyMs: took,
    generationMs: took,
  };
}

function send(
  context: RequestContext,
  answer: ClientAnswer,
  { stamp, closing }: { stamp: Stamp; closing: Closing },
  parts: InferenceParts,
): void {
  const { sink, request } = context;
  if (sink.closed) return;
  if (request.facts.stream) {
    context.answerStream(parts).complete(answer.take(), answer.end!.end(closing), stamp, 'utf8', parts.clock.now());
    return;
  }
  const body = answer.whole!.write(stamp, closing);
  for (const listener of context.listeners ?? []) listener.wrote?.(body);
  sink.reply(200, headersOf(context), body);
}

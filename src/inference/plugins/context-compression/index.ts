/**
 * Context compression: a history that exceeds the context of its model loses whole turns from its middle. A tool call
 * is never parted from its result, and the instructions, the first turn and the last question stay.
 */
import { readDocument, stringifyJson } from '../../../base/json.ts';
import { applyEdits } from '../../../base/json-edits.ts';
import type { Endpoint } from '../../../catalog/index.ts';
import { listOf } from '../../../formats/conversation/fields.ts';
import { unitsOf } from '../../../formats/conversation/history.ts';
import { optional, word } from '../../../formats/conversation/loose-schema.ts';
import { changeDocument } from '../../admission/changed-document.ts';
import type { ConversationRequest } from '../../request.ts';
import type { Plugin, PluginStep } from '../plugin.ts';
import { middleOut, type SizedUnit } from './middle-out.ts';
import { PromptSizes } from './prompt-sizes.ts';

export const contextCompression: Plugin = {
  id: 'context-compression',
  parameters: { engine: optional(word(['middle-out'])) },
  beforeRouting(step) {
    const { request } = step.context;
    // A thread's history is at the upstream.
    if (request.facts.thread !== undefined) return undefined;
    const endpoint = roomiest(step.candidates().map((candidate) => candidate.endpoint));
    if (endpoint === undefined) return undefined;
    const room = promptRoom(endpoint, request);
    // A token has at least one byte, so a request with fewer bytes fits.
    return request.document.bytes.length <= room ? undefined : compress(step, endpoint, room);
  },
};

/** The endpoint of the first model with the largest context; undefined if it is not known. */
function roomiest(endpoints: readonly Endpoint[]): (Endpoint & { contextLength: number }) | undefined {
  let best: (Endpoint & { contextLength: number }) | undefined;
  for (const endpoint of endpoints) {
    const { contextLength, modelId } = endpoint;
    if (contextLength === null || modelId !== endpoints[0]!.modelId) continue;
    if (best === undefined || contextLength > best.contextLength) best = { ...endpoint, contextLength };
  }
  return best;
}

/** Tokens that the context leaves for the prompt: at least half of it, whatever the answer may need. */
function promptRoom(
  { contextLength, maxCompletionTokens }: Endpoint & { contextLength: number },
  { facts }: ConversationRequest,
): number {
  const answer = facts.maxOutputTokens ?? Math.min(maxCompletionTokens ?? Number.POSITIVE_INFINITY, contextLength / 4);
  return Math.floor(contextLength - Math.min(answer, contextLength / 2));
}

async function compress({ context, parts }: PluginStep, endpoint: Endpoint, room: number): Promise<void> {
  const { request } = context;
  const { format, document } = request;
  const { root } = format.history;
  const items = listOf(document.exact[root]);
  const sizes = new PromptSizes(format, endpoint, parts.tokens);
  const all = await sizes.of(document.value);
  if (all <= room) return;
  const values = listOf(document.value[root]);
  const units: SizedUnit[] = [];
  for (const unit of unitsOf(values, format.history)) {
    units.push({ ...unit, tokens: await sizes.of({ [root]: values.slice(unit.start, unit.end) }) });
  }
  const dropped = middleOut(units, all - room);
  if (dropped === undefined) {
    context.addStage(
      stageOf({ summary: 'the history does not fit even without its middle', all, room, exact: sizes.exact }),
    );
    return;
  }
  const kept = items.filter((_, index) => !dropped.some(({ start, end }) => index >= start && index < end));
  changeDocument(context, readDocument(applyEdits(document, [{ key: root, json: stringifyJson(kept) }])));
  const messages = items.length - kept.length;
  const after = all - dropped.reduce((sum, { tokens }) => sum + tokens, 0);
  context.addStage(
    stageOf({
      summary: `dropped ${messages} of ${items.length} messages`,
      all,
      room,
      exact: sizes.exact,
      messages,
      after,
    }),
  );
}

interface Compressed {
  summary: string;
  all: number;
  room: number;
  exact: boolean;
  messages?: number;
  after?: number;
}

function stageOf({ summary, all, room, exact, messages = 0, after = all }: Compressed) {
  return {
    type: 'context_compression' as const,
    name: 'context-compression',
    summary,
    data: {
      engine: 'middle-out',
      dropped_messages: messages,
      tokens_before: all,
      tokens_after: after,
      tokens_allowed: room,
      estimated: !exact,
    },
  };
}

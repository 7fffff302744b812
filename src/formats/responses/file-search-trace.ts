/**
 * Searches in the gateway's vector stores, shown as `file_search_call` for requests that declare the tool as OpenAI's
 * SDK does. Searches of a vendor look alike, so the gateway recognizes its own by their ids.
 */
import type { OpaquePart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { type PastToolStep, readStepId, stepId, type ToolStart, type ToolStep } from '../conversation/tool-steps.ts';

/** The type of the declaration. */
const TYPE = 'file_search';
const CALL = 'file_search_call';
const ID = 'fs_';
/** An id that `stepId` made. */
const OWN_ID = /^fs_\d{1,4}\+?!?\./;

export function isFileSearch({ tool }: Pick<ToolStart, 'tool'>): boolean {
  return tool === TYPE;
}

export function isOwnFileSearch(value: unknown): boolean {
  const { type, id } = fieldsOf(value);
  return type === CALL && OWN_ID.test(textOf(id));
}

export function startedSearch(step: ToolStart): OpaquePart {
  return item({ ...callOf(step, false), status: 'in_progress', queries: [], results: null });
}

/** The members that carry the call itself are additional. */
export function endedSearch(step: ToolStep): OpaquePart {
  return item({
    ...callOf(step, step.failed),
    status: step.failed ? 'failed' : 'completed',
    ...{ queries: step.item['queries'] ?? [], results: step.item['results'] ?? null },
    ...{ call_id: step.id, name: step.name, arguments: step.arguments, result: step.result },
  });
}

function item(value: Fields): OpaquePart {
  return { type: 'opaque', origin: 'responses', value };
}

function callOf(step: ToolStart, failed: boolean): Fields {
  return { type: CALL, id: `${ID}${stepId({ ...step, failed })}` };
}

/** Clients that keep only members of the SDK's schema drop the call: queries and results replace it. */
export function fileSearchStepOf(value: Fields): PastToolStep {
  const { queries, results } = value;
  return {
    ...readStepId(textOf(value['id']).slice(ID.length), textOf(value['call_id'])),
    name: textOrUndefined(value['name']) ?? TYPE,
    arguments: textOrUndefined(value['arguments']) ?? JSON.stringify({ queries: listOf(queries) }),
    result: textOrUndefined(value['result']) ?? JSON.stringify({ results: results ?? 'no longer known' }),
  };
}

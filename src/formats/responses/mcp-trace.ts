/**
 * Calls of MCP servers that the gateway made, as `mcp_call`, with `mcp_list_tools` and requests for approval. Items of
 * calls that a vendor made look alike, so the gateway recognizes its own by their ids.
 */
import type { Message, OpaquePart, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { type McpAnswer, type McpTrace, mcpFunctionName } from '../conversation/mcp.ts';
import {
  type CallResult,
  type PastToolStep,
  readStepId,
  stepId,
  type ToolStart,
  type ToolStep,
} from '../conversation/tool-steps.ts';

const CALL = 'mcp_call';
const ASKED = 'mcp_approval_request';
const ANSWER = 'mcp_approval_response';
const LISTED = 'mcp_list_tools';
const CALL_ID = 'mcp_';
const ASKED_ID = 'mcpr_';
const LISTED_ID = 'mcpl_0.';
/** An id that `stepId` made, after its prefix. */
const OWN_ID = /^mcpr?_\d{1,4}\+?!?\.|^mcpl_0\./;

export function isOwnMcpItem(value: unknown): boolean {
  const { type, id, approval_request_id: answered } = fieldsOf(value);
  if (typeof type !== 'string' || !type.startsWith('mcp_')) return false;
  return OWN_ID.test(textOf(type === ANSWER ? answered : id));
}

function item(value: Fields): OpaquePart {
  return { type: 'opaque', origin: 'responses', value };
}

export function startedCall(step: ToolStart): OpaquePart {
  return item({ ...callOf(step, false), status: 'in_progress', output: null, error: null });
}

export function endedCall(step: ToolStep): OpaquePart {
  return item({
    ...callOf(step, step.failed),
    status: step.failed ? 'failed' : 'completed',
    output: step.result,
    error: step.item['error'] ?? null,
  });
}

function callOf(step: ToolStart, failed: boolean): Fields {
  const { label, name } = step.mcp!;
  const { approvalId } = step;
  return {
    type: CALL,
    id: `${CALL_ID}${stepId({ ...step, failed })}`,
    server_label: label,
    name,
    arguments: step.arguments,
    ...(approvalId !== undefined && { approval_request_id: approvalId }),
  };
}

/** @param value an item of the gateway's own */
export function mcpStepOf(value: Fields): PastToolStep | undefined {
  if (value['type'] !== CALL) return undefined;
  return {
    ...readStepId(textOf(value['id']).slice(CALL_ID.length), ''),
    name: mcpFunctionName({ label: textOf(value['server_label']), name: textOf(value['name']) }),
    arguments: textOf(value['arguments']),
    result: textOrUndefined(value['output']) ?? JSON.stringify({ error: value['error'] ?? 'no result' }),
  };
}

export const mcpTrace: McpTrace = {
  listed: ({ label, tools, error }) =>
    item({
      type: LISTED,
      id: `${LISTED_ID}${label}`,
      server_label: label,
      tools: tools.map(({ name, description, schema, annotations }) => ({
        name,
        description,
        input_schema: schema,
        annotations: annotations ?? null,
      })),
      error,
    }),
  asked: (step) =>
    item({
      type: ASKED,
      id: `${ASKED_ID}${stepId({ ...step, failed: false })}`,
      server_label: step.mcp!.label,
      name: step.mcp!.name,
      arguments: step.arguments,
    }),
  listedIn: ({ input }) => new Set(ownItems(input, LISTED).map((each) => textOf(each['server_label']))),
  answersIn({ input }) {
    const carriedOut = new Set(ownItems(input, CALL).map((each) => each['approval_request_id']));
    const answers = answersOf(ownItems(input, ANSWER));
    return ownItems(input, ASKED).flatMap((asked): McpAnswer[] => {
      const approvalId = textOf(asked['id']);
      const answer = answers.get(approvalId);
      if (answer === undefined || carriedOut.has(approvalId)) return [];
      const { id: callId } = readStepId(approvalId.slice(ASKED_ID.length), '');
      const called = { label: textOf(asked['server_label']), name: textOf(asked['name']) };
      return [{ ...called, approvalId, callId, arguments: textOf(asked['arguments']), approved: answer.approved }];
    });
  },
  settled(messages, results) {
    const items = messages.flatMap(({ parts }) => parts.map(ownItem)).filter(isFields);
    const answers = answersOf(items.filter(({ type }) => type === ANSWER));
    const carriedOut = new Set(items.flatMap((each) => (each['type'] === CALL ? each['approval_request_id'] : [])));
    const settle = (part: Part): Part[] => {
      const own = ownItem(part);
      if (own === undefined || own['type'] === CALL) return [part];
      const id = textOf(own['id']);
      if (own['type'] !== ASKED || carriedOut.has(id)) return [];
      return [asCall(own, results.get(id) ?? withoutResult(answers.get(id)))];
    };
    return messages
      .map((message): Message => ({ ...message, parts: message.parts.flatMap(settle) }))
      .filter(({ parts }) => parts.length > 0);
  },
};

interface Answer {
  approved: boolean;
  reason: string;
}

/** By the ids of the requests for approval. */
function answersOf(items: readonly Fields[]): Map<string, Answer> {
  return new Map(
    items.map(({ approval_request_id: id, approve, reason }) => [
      textOf(id),
      { approved: approve === true, reason: textOf(reason) },
    ]),
  );
}

/** Of a call that was not carried out. */
function withoutResult(answer: Answer | undefined): CallResult {
  const error =
    answer === undefined
      ? 'the user has not allowed this call yet'
      : answer.approved
        ? 'the tool is not available'
        : `the user did not allow this call${answer.reason === '' ? '' : `: ${answer.reason}`}`;
  return { result: JSON.stringify({ error }), failed: true };
}

function asCall(asked: Fields, { result, failed }: CallResult): OpaquePart {
  const place = readStepId(textOf(asked['id']).slice(ASKED_ID.length), '');
  const { type: _, ...members } = asked;
  return item({ ...members, type: CALL, id: `${CALL_ID}${stepId({ ...place, failed })}`, output: result });
}

function ownItem(part: Part): Fields | undefined {
  return part.type === 'opaque' && isOwnMcpItem(part.value) ? fieldsOf(part.value) : undefined;
}

function ownItems(input: unknown, type: string): Fields[] {
  return listOf(input).filter((each): each is Fields => fieldsOf(each)['type'] === type && isOwnMcpItem(each));
}

/**
 * Calls of server tools as clients see them in an answer and send them back in a history. Each format shows a call in
 * its own words (`ServedFormat.toolTrace`). The conversation of a later request is rebuilt from these.
 */
import { stringifyJson } from '../../base/json.ts';
import type { Message, OpaquePart, Part } from './conversation.ts';
import { type Fields, fieldsOf } from './fields.ts';
import type { McpToolName, McpTrace } from './mcp.ts';
import type { SuspendedTrace } from './suspended.ts';

/** A call that the gateway is about to run. */
export interface ToolStart {
  /** Id of the call, as the model or the upstream made it. */
  id: string;
  /** Wire name of the tool in the client's spelling: `svc:datetime`. */
  tool: string;
  /** Name of the function that the model called. */
  name: string;
  /** JSON text, as the model wrote it. */
  arguments: string;
  /** Number of the model's turn within the answer, from 1. */
  turn: number;
  /** The model called functions of the client in the same turn. */
  mixed: boolean;
  /** Of a tool that the format shows as one of an MCP server. */
  mcp?: McpToolName;
  /** The request for approval that the client has allowed. */
  approvalId?: string;
}

/** A call with its result. */
export interface ToolStep extends ToolStart, CallResult {
  /** Members of the tool's item in the responses format. */
  item: Readonly<Record<string, unknown>>;
  /** Type and content of the tool's result in the messages format. Absent: `svc_<tool>_tool_result` with the item's members. */
  block?: { readonly type: string; readonly content: unknown };
}

export interface CallResult {
  /** For the model. */
  result: string;
  failed: boolean;
}

/** A step that was read from a history. */
export type PastToolStep = Omit<ToolStep, 'item' | 'block' | 'tool' | 'mcp' | 'approvalId'>;

export interface ToolTrace {
  /** Whether the history of a request holds steps. Cheap enough for every request. @param request checked */
  holds(request: Fields): boolean;
  /** Shown when the call begins; undefined where the format shows a call with its result only. */
  start(step: ToolStart): OpaquePart | undefined;
  /** Shown when the call has ended. */
  end(step: ToolStep): OpaquePart;
  /** Clients do not see the members of items. */
  readonly hidesItems?: true;
  /** Whether `end` replaces the value of the part that `start` showed; otherwise both parts stay. */
  readonly replaces: boolean;
  read(parts: readonly Part[]): PastToolSteps;
  /** Absent: the format has no words for MCP servers, so clients cannot be asked for approval. */
  readonly mcp?: McpTrace;
  /** Absent: calls of the format's answers never wait for functions of the client. */
  readonly suspended?: SuspendedTrace;
}

/** The steps in an assistant message, by the index of the part that ends each; `taken` holds all their parts. */
export interface PastToolSteps {
  steps: ReadonlyMap<number, PastToolStep>;
  taken: ReadonlySet<number>;
}

/** The reader of a format that shows each step as one part. @param stepOf undefined for any other part */
export function readSteps(stepOf: (value: unknown) => PastToolStep | undefined): ToolTrace['read'] {
  return (parts) => {
    const steps = new Map<number, PastToolStep>();
    parts.forEach((part, at) => {
      const step = part.type === 'opaque' ? stepOf(part.value) : undefined;
      if (step !== undefined) steps.set(at, step);
    });
    return { steps, taken: new Set(steps.keys()) };
  };
}

interface StepPlace {
  id: string;
  turn: number;
  mixed: boolean;
  failed: boolean;
}

/** The result of a step whose client has lost the text that the model read. @param shown members that clients see */
export function shownResult(shown: unknown): string {
  const { result: _result, imageB64: _image, ...texts } = fieldsOf(shown);
  return stringifyJson(Array.isArray(shown) ? shown : texts);
}

/**
 * The id of a step: the call's id with facts that the formats have no members for. `2+!.call_1`: turn 2, mixed, failed.
 */
export function stepId({ id, turn, mixed, failed }: StepPlace): string {
  return `${turn}${mixed ? '+' : ''}${failed ? '!' : ''}.${id}`;
}

/** Reads an id of `stepId`; clients may have lost it. @param callId where the format repeats the call's id */
export function readStepId(written: string, callId: string): StepPlace {
  const [, turn, mixed, failed, id] = /^(\d{1,4})(\+?)(!?)\.(.*)$/s.exec(written) ?? [];
  if (turn === undefined) return { id: callId === '' ? written : callId, turn: 0, mixed: false, failed: false };
  return { id: id!, turn: Number(turn), mixed: mixed === '+', failed: failed === '!' };
}

/** The conversation with the steps of its history as calls and results, which every upstream understands. */
export function withPastSteps(messages: readonly Message[], { read }: Pick<ToolTrace, 'read'>): Message[] {
  return messages.flatMap((message) => (message.role === 'assistant' ? rebuilt(message, read) : [message]));
}

function rebuilt(message: Message, read: ToolTrace['read']): Message[] {
  const { steps, taken } = read(message.parts);
  if (steps.size === 0) return [message];
  // Images next to steps are made by a tool. The model knows them by its result, and few upstreams take them from it.
  const isImage = (part: Part) => part.type === 'image';
  const messages: Message[] = [];
  let parts: Part[] = [];
  let ended: PastToolStep[] = [];
  const close = () => {
    if (parts.length > 0) messages.push({ ...message, parts });
    if (ended.length > 0) messages.push(resultsOf(ended));
    parts = [];
    ended = [];
  };
  message.parts.forEach((part, at) => {
    const step = steps.get(at);
    const last = ended.at(-1);
    if (step !== undefined) {
      if (last !== undefined && last.turn !== step.turn) close();
      const { id, name, arguments: text } = step;
      parts.push({ type: 'toolCall', id, name, arguments: text });
      ended.push(step);
    } else if (!taken.has(at) && !isImage(part)) {
      if (last !== undefined && !last.mixed) close();
      parts.push(part);
    }
  });
  close();
  return messages;
}

function resultsOf(steps: readonly PastToolStep[]): Message {
  return { role: 'tool', parts: steps.map((step) => resultPart(step)) };
}

export function resultPart({ id, result, failed }: { id: string; result: string; failed: boolean }): Part {
  return {
    type: 'toolResult',
    callId: id,
    parts: [{ type: 'text', text: result }],
    ...(failed && { isError: true }),
  };
}

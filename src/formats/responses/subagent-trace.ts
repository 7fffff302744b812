/**
 * Subagents that wait for functions of the client. The answer has the `svc:subagent` item in progress and a `function_call` for
 * each call of a function. `subagent_id` names the subagent by the `call_id` of its item, and the first call of a
 * round has the subagent's own items, `subagent_items`. A subagent that ends is a new item with the same `call_id`.
 */
import { invalidField } from '../../base/errors.ts';
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import type { Message, OpaquePart, Part, ToolCallPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { SuspendedCall, SuspendedTrace } from '../conversation/suspended.ts';
import { type CallResult, readStepId, stepId } from '../conversation/tool-steps.ts';
import { readObject } from './own-calls.ts';

/** Before the ids of items that show calls of server tools. */
export const STEP_ID = 'st_';
const SUBAGENT = `${WIRE_NAME}:subagent`;
/** The most items of one round; a round is one answer of the subagent. */
const MOST_ITEMS = 1_000;

/** One answer of a subagent, with calls of the client's functions. */
interface Round {
  items: readonly Fields[];
  /** Ids of the calls. */
  calls: readonly string[];
  /** Index of the item that has it. */
  at: number;
}

interface Suspension {
  item: Fields;
  rounds: Round[];
  /** The item that ends it. */
  end: Fields | undefined;
}

/** Reads a history in order. */
class Suspensions {
  readonly all: Suspension[] = [];
  readonly #open = new Map<string, Suspension>();

  /** Takes an item of a subagent. Returns what the item does. */
  take(item: Fields): 'begins' | 'ends' | undefined {
    const callId = textOf(item['call_id']);
    if (callId === '') return undefined;
    if (item['status'] === 'in_progress') {
      const suspension: Suspension = { item, rounds: [], end: undefined };
      this.all.push(suspension);
      this.#open.set(callId, suspension);
      return 'begins';
    }
    const open = this.#open.get(callId);
    if (open === undefined) return undefined;
    open.end = item;
    this.#open.delete(callId);
    return 'ends';
  }

  open(subagentId: string): Suspension | undefined {
    return this.#open.get(subagentId);
  }
}

function isSubagent(item: Fields): boolean {
  return toWireName(textOf(item['type'])) === SUBAGENT;
}

/** A call that a subagent makes of a function of the client. */
function isOfSubagent({ type, subagent_id: id, subagent_items: items }: Fields): boolean {
  return type === 'function_call' && ((id ?? undefined) !== undefined || (items ?? undefined) !== undefined);
}

function roundOf(items: readonly Fields[], at: number): Round {
  return { items, calls: callsOf(items).map((call) => textOf(call['call_id'])), at };
}

function callsOf(items: readonly Fields[]): Fields[] {
  return items.filter(({ type }) => type === 'function_call');
}

function read(input: readonly unknown[]): readonly Suspension[] {
  const found = new Suspensions();
  input.forEach((entry, at) => {
    const item = fieldsOf(entry);
    if (isSubagent(item)) found.take(item);
    else if (isOfSubagent(item) && Array.isArray(item['subagent_items'])) {
      found.open(textOf(item['subagent_id']))?.rounds.push(roundOf(item['subagent_items'].map(fieldsOf), at));
    }
  });
  return found.all;
}

/**
 * @param input of a request
 * @param checkItem of a single item, with its path
 * @throws GatewayError 400 with the path of what is missing or does not fit together
 */
export function checkSubagents(input: readonly unknown[], checkItem: (item: Fields, path: string) => void): void {
  const items = input.map(fieldsOf);
  if (!items.some(isOfSubagent)) return;
  const found = new Suspensions();
  const ids = new Set<string>();
  items.forEach((item, at) => {
    if (isSubagent(item)) found.take(item);
    if (item['type'] !== 'function_call') return;
    const path = `input[${at}]`;
    if (isOfSubagent(item)) checkCall(item, path, { at, found, checkItem });
    const id = textOf(item['call_id']);
    if (ids.has(id)) throw invalidField(`${path}.call_id`, 'is the id of another call too');
    ids.add(id);
  });
  const outputs = outputsIn(items);
  for (const { item, rounds, end } of found.all) {
    if (end !== undefined || rounds.length === 0) continue;
    const missing = rounds.find(({ calls }) => calls.some((id) => !outputs.has(id)));
    if (missing !== undefined) {
      const call = missing.calls.find((id) => !outputs.has(id))!;
      throw invalidField(`input[${missing.at}]`, `has the call ${quoted(call)} of a subagent without an output`);
    }
    if (typeof inputOf(item)['task_description'] === 'string') continue;
    throw invalidField(`input[${items.indexOf(item)}].task_description`, 'must be a string');
  }
}

interface Checking {
  at: number;
  found: Suspensions;
  checkItem(item: Fields, path: string): void;
}

function checkCall(call: Fields, path: string, { at, found, checkItem }: Checking): void {
  const { subagent_id: id, subagent_items: own } = call;
  const open = typeof id === 'string' ? found.open(id) : undefined;
  if (open === undefined) {
    throw invalidField(`${path}.subagent_id`, `must be the call_id of an earlier ${SUBAGENT} item that is in progress`);
  }
  if ((own ?? undefined) !== undefined) open.rounds.push(roundOf(checkedItems(own, path, checkItem), at));
  const last = open.rounds.at(-1);
  if (last === undefined) throw invalidField(`${path}.subagent_items`, 'is missing');
  if (!last.calls.includes(textOf(call['call_id']))) {
    throw invalidField(`${path}.call_id`, 'must be that of a function_call in subagent_items');
  }
}

function checkedItems(own: unknown, path: string, checkItem: Checking['checkItem']): Fields[] {
  if (!Array.isArray(own) || own.length > MOST_ITEMS) {
    throw invalidField(`${path}.subagent_items`, `must be a list of at most ${MOST_ITEMS} items`);
  }
  return own.map((item: unknown, index) => {
    const at = `${path}.subagent_items[${index}]`;
    if (!isFields(item) || typeof item['type'] !== 'string') throw invalidField(`${at}.type`, 'is missing');
    const { type, role } = item;
    const isWritten = type === 'message' ? role === 'assistant' : !type.endsWith('_output');
    if (!isWritten || isOfSubagent(item)) throw invalidField(at, 'is not an item that a subagent has written');
    checkItem(item, at);
    return item;
  });
}

function outputsIn(items: readonly Fields[]): Map<string, Fields> {
  const outputs = items.filter(({ type }) => type === 'function_call_output');
  return new Map(outputs.map((item) => [textOf(item['call_id']), item]));
}

const quoted = (id: string) => JSON.stringify(id.slice(0, 100));

/** Clients that keep only members of their own schema drop the arguments. */
function inputOf({ arguments: written, task_name, task_description, model }: Fields): Fields {
  const named = { task_name, task_description, ...(typeof model === 'string' && { model }) };
  return typeof written === 'string' ? { ...named, ...readObject(written) } : named;
}

function argumentsOf(item: Fields): string {
  const { arguments: written, task_name, task_description } = item;
  return textOrUndefined(written) ?? JSON.stringify({ task_name, task_description });
}

export const suspendedSubagents: SuspendedTrace = {
  pendingIn({ input }) {
    const items = listOf(input);
    const suspensions = read(items);
    if (suspensions.length === 0) return [];
    const outputs = outputsIn(items.map(fieldsOf));
    const answersTo = ({ calls }: Round) =>
      calls.flatMap((id): Fields[] => {
        const output = outputs.get(id);
        return output === undefined ? [] : [{ type: 'function_call_output', call_id: id, output: output['output'] }];
      });
    return suspensions.flatMap(({ item, rounds, end }, index): SuspendedCall[] => {
      if (end !== undefined || rounds.length === 0) return [];
      return [
        {
          index,
          callId: textOf(item['call_id']),
          instance: textOrUndefined(item['instance_name']),
          input: inputOf(item),
          earlier: rounds.flatMap((round) => [...round.items, ...answersTo(round)]),
          rounds: rounds.length,
        },
      ];
    });
  },

  waiting: (step, members): OpaquePart => ({
    type: 'opaque',
    origin: 'responses',
    value: {
      type: step.tool,
      id: `${STEP_ID}${stepId({ ...step, failed: false })}`,
      status: 'in_progress',
      ...members,
      call_id: step.id,
      name: step.name,
      arguments: step.arguments,
    },
  }),

  asked: (callId, items) =>
    callsOf(items).map((call, at): ToolCallPart => {
      const about = { subagent_id: callId, ...(at === 0 && { subagent_items: items }) };
      return {
        type: 'toolCall',
        id: textOf(call['call_id']),
        name: textOf(call['name']),
        arguments: textOf(call['arguments']),
        extras: { responses: about },
      };
    }),

  settled(messages, results) {
    const found = new Suspensions();
    const begun = new Map<Part, Suspension>();
    const left = new Set<Part>();
    const calls = new Set<string>();
    for (const part of messages.flatMap(({ parts }) => parts)) {
      if (part.type === 'toolCall' && typeof part.extras?.responses?.['subagent_id'] === 'string') {
        left.add(part);
        calls.add(part.id);
      }
      const item = part.type === 'opaque' ? fieldsOf(part.value) : {};
      if (!isSubagent(item)) continue;
      const does = found.take(item);
      if (does === 'begins') begun.set(part, found.all.at(-1)!);
      else if (does === 'ends') left.add(part);
    }
    if (begun.size === 0 && left.size === 0) return messages;
    const settle = (part: Part): Part[] => {
      if (left.has(part) || (part.type === 'toolResult' && calls.has(part.callId))) return [];
      const suspension = begun.get(part);
      return [suspension === undefined ? part : asStep(suspension, results.get(found.all.indexOf(suspension)))];
    };
    return messages
      .map((message): Message => ({ ...message, parts: message.parts.flatMap(settle) }))
      .filter(({ parts }) => parts.length > 0);
  },
};

const NOT_ENDED: CallResult = { result: JSON.stringify({ error: 'the subagent did not finish' }), failed: true };

/** The call with its result, as the item of a subagent that was never suspended. */
function asStep({ item, end }: Suspension, known: CallResult | undefined): OpaquePart {
  const failed = end === undefined ? (known ?? NOT_ENDED).failed : end['status'] !== 'completed';
  const place = readStepId(textOf(item['id']).slice(STEP_ID.length), textOf(item['call_id']));
  const value = {
    ...item,
    ...(end ?? { result: (known ?? NOT_ENDED).result }),
    id: `${STEP_ID}${stepId({ ...place, failed })}`,
    status: failed ? 'incomplete' : 'completed',
    name: item['name'] ?? end?.['name'],
    arguments: argumentsOf(item),
  };
  return { type: 'opaque', origin: 'responses', value };
}

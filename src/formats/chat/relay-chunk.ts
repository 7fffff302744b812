/** One choice of a relayed chunk: checks it against the format and repairs it. */
import { scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import { scanElements } from '../../base/json-list.ts';
import type { TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import { hasNulls, withoutNulls } from './nulls.ts';

interface Call {
  id: string;
  name: string;
  empty: boolean;
  custom: boolean;
}

/** The state of one choice of the stream. */
export class RelayedChoice {
  readonly index: number;
  readonly calls: Call[] = [];
  /** Whether a chunk with a role was received or written. */
  introduced = false;
  /** The upstream's numbering of calls is not standard, so every call delta is rewritten. */
  crooked = false;
  /** The text may still turn out to be thinking, so the decoded text is sent instead. */
  tagged: boolean;
  readonly #kinds = new Map<number, string>();
  readonly #callOf = new Map<number, number>();

  constructor(index: number, tagged: boolean) {
    this.index = index;
    this.tagged = tagged;
  }

  track(event: TurnEvent & { type: 'partStart' | 'partDelta' }): void {
    if (event.type === 'partStart') {
      const { part } = event;
      this.#kinds.set(event.index, part.type);
      if (part.type !== 'toolCall') return;
      this.#callOf.set(event.index, this.calls.length);
      this.calls.push({ id: part.id, name: part.name, empty: true, custom: part.custom === true });
    } else if (event.delta.arguments) {
      const call = this.calls[this.#callOf.get(event.index) ?? -1];
      if (call !== undefined) call.empty = false;
    }
  }

  /** The additions of the events to this choice, as members of a delta. */
  additions(events: readonly TurnEvent[]): { content: string; reasoning: string; calls: Fields[] } {
    const added = { content: '', reasoning: '', calls: [] as Fields[] };
    for (const event of events) {
      if ((event.type !== 'partStart' && event.type !== 'partDelta') || event.choice !== this.index) continue;
      const index = this.#callOf.get(event.index);
      if (event.type === 'partStart') {
        if (index === undefined) continue;
        const { id, name } = this.calls[index]!;
        added.calls.push({ index, id, type: 'function', function: { name, arguments: '' } });
      } else if (index !== undefined) {
        addArguments(added.calls, index, event.delta.arguments ?? '');
      } else if (this.#kinds.get(event.index) === 'text') added.content += event.delta.text ?? '';
      else if (this.#kinds.get(event.index) === 'reasoning') added.reasoning += event.delta.text ?? '';
    }
    return added;
  }
}

function addArguments(calls: Fields[], index: number, written: string): void {
  const opened = calls.find((call) => call['index'] === index);
  const body = fieldsOrUndefined(opened?.['function']);
  if (body !== undefined) body['arguments'] = String(body['arguments']) + written;
  else calls.push({ index, function: { arguments: written } });
}

/**
 * `standard`: forwarded as it is; `reasoning`: only lacks `reasoning` next to a vendor's name for it; `broken`:
 * repaired.
 */
type Assessment = 'standard' | 'reasoning' | 'broken';

/** Whether the decoder read a different text than the chunk has; called after its events are tracked. */
export function isRetold(choice: Fields, known: RelayedChoice, events: readonly TurnEvent[]): boolean {
  if (!known.tagged) return false;
  const content = textOf(fieldsOrUndefined(choice['delta'])?.['content']);
  const same = known.additions(events).content === content;
  if (same && content !== '') known.tagged = false;
  return !same;
}

/** Classifies a choice before its events are tracked. */
export function assess(choice: Fields, known: RelayedChoice, events: readonly TurnEvent[]): Assessment {
  const delta = fieldsOrUndefined(choice['delta']);
  // First, because non-standard numbering must be recorded even if the chunk is broken in another way.
  const calls = delta?.['tool_calls'];
  if (calls !== undefined && calls !== null && !areStandard(calls, known, events)) {
    known.crooked = true;
    return 'broken';
  }
  if (delta === undefined || choice['index'] !== known.index || hasNulls(delta)) return 'broken';
  if (choice['finish_reason'] === undefined || choice['finish_reason'] === '') return 'broken';
  const { content } = delta;
  if (content !== undefined && content !== null && typeof content !== 'string') return 'broken';
  if (!known.introduced && delta['role'] !== 'assistant') return 'broken';
  if (nonEmptyText(delta['reasoning']) !== undefined) return 'standard';
  if (nonEmptyText(delta['reasoning_content']) !== undefined) return 'reasoning';
  // Some services send thinking in the details only.
  return listOf(delta['reasoning_details']).length > 0 ? 'broken' : 'standard';
}

function areStandard(calls: unknown, known: RelayedChoice, events: readonly TurnEvent[]): boolean {
  if (!Array.isArray(calls) || known.crooked) return false;
  const fresh: string[] = [];
  for (const value of calls as unknown[]) {
    const call = fieldsOf(value);
    const index = call['index'];
    const id = nonEmptyText(call['id']);
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index > known.calls.length + fresh.length)
      return false;
    const before = known.calls[index]?.name ?? fresh[index - known.calls.length];
    const body = fieldsOrUndefined(call['function']) ?? fieldsOrUndefined(call['custom']);
    const name = nonEmptyText(body?.['name']);
    // Some services send the arguments as an object; clients concatenate texts.
    const written = body?.['arguments'];
    if (written !== undefined && written !== null && typeof written !== 'string') return false;
    if (before !== undefined) {
      // The name may be sent only once: clients that concatenate argument pieces concatenate names, too.
      if (id !== undefined || name === before) return false;
    } else {
      if (id === undefined || name === undefined || nonEmptyText(call['type']) === undefined) return false;
      // False when another call already has the id.
      if (!events.some((event) => event.type === 'partStart' && event.part.type === 'toolCall' && event.part.id === id))
        return false;
      fresh.push(name);
    }
  }
  return true;
}

/** The choice in the standard format, built from the decoded events, with its unknown members. */
export function mendChoice(choice: Fields, known: RelayedChoice, events: readonly TurnEvent[]): Fields {
  const added = known.additions(events);
  const delta: Fields = { ...fieldsOrUndefined(choice['delta']) };
  if (!known.introduced) delta['role'] = 'assistant';
  const { content } = delta;
  const strange = content !== undefined && content !== null && typeof content !== 'string';
  if (strange || known.tagged || choice['delta'] === undefined) {
    delete delta['content'];
    if (added.content !== '') delta['content'] = added.content;
  }
  if (added.reasoning !== '' && nonEmptyText(delta['reasoning']) === undefined) delta['reasoning'] = added.reasoning;
  if (known.crooked || choice['delta'] === undefined) {
    const raw = listOf(delta['tool_calls']);
    delete delta['tool_calls'];
    if (added.calls.length > 0) delta['tool_calls'] = withUnknown(added.calls, raw);
  }
  return {
    ...choice,
    index: known.index,
    delta: withoutNulls(delta),
    finish_reason: nonEmptyText(choice['finish_reason']) ?? null,
  };
}

/** The calls with their unknown members (Gemini's `extra_content`), if these can be assigned unambiguously. */
function withUnknown(calls: readonly Fields[], raw: readonly unknown[]): readonly Fields[] {
  if (calls.length !== raw.length) return calls;
  return calls.map((call, index) => {
    const { function: body, id: _id, ...others } = fieldsOf(raw[index]);
    const { name: _name, arguments: _arguments, ...unknown } = fieldsOf(body);
    return { ...others, ...call, function: { ...unknown, ...fieldsOrUndefined(call['function']) } };
  });
}

/**
 * The chunk text with `reasoning` inserted before its only `reasoning_content`; undefined if the position is ambiguous.
 * In JSON text, `"reasoning_content":` is always a key: within a string the quotes would be escaped.
 */
export function withReasoning(text: string, reasoning: string): string | undefined {
  const key = '"reasoning_content":';
  const at = text.indexOf(key);
  if (at === -1 || text.indexOf(key, at + key.length) !== -1 || text.includes('"reasoning":')) return undefined;
  return `${text.slice(0, at)}"reasoning":${JSON.stringify(reasoning)},${text.slice(at)}`;
}

/** The text of a single-choice chunk with members of the choice edited. */
export function editOnlyChoice(text: string, edits: readonly Edit[]): string {
  const members = scanMembers(text);
  const choices = members.findLast((member) => member.key === 'choices');
  if (choices === undefined) return text;
  const inside = text.slice(choices.valueStart, choices.valueEnd);
  const [only] = scanElements(inside, 1);
  if (only === undefined) return text;
  const choice = inside.slice(only.start, only.end);
  const json = `[${patchMembers(choice, scanMembers(choice), edits)}]`;
  return patchMembers(text, members, [{ key: 'choices', json }]);
}

/** A chunk that closes calls without arguments, so that clients always get JSON text (BerriAI/litellm#5064). */
export function emptyArguments(choice: RelayedChoice): string | undefined {
  const calls: Fields[] = [];
  choice.calls.forEach((call, index) => {
    if (call.empty && !call.custom) calls.push({ index, function: { arguments: '{}' } });
  });
  if (calls.length === 0) return undefined;
  return stringifyJson([{ index: choice.index, delta: { tool_calls: calls }, finish_reason: null }]);
}

export function hasContent(events: readonly TurnEvent[], choice: Fields): boolean {
  if (listOf(fieldsOrUndefined(choice['delta'])?.['tool_calls']).length > 0) return true;
  return events.some(({ type }) => type === 'partStart' || type === 'partDelta' || type === 'logprobs');
}

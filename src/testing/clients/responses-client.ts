/**
 * A strict client of the responses format, written from the public API reference: it reads an event stream as an SDK would and fails
 * on whatever breaks the format. It shares no code with `src/formats`.
 */
import assert from 'node:assert/strict';
import { readServerSentEvents } from '../recordings/corpus.ts';
import type { ServedChoice } from './served-answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

export interface ReadResponse {
  /** What a client that listens to every delta has. */
  choice: ServedChoice;
  /** The last response object that came. */
  response: Record<string, unknown>;
  error: Record<string, unknown> | undefined;
  /** The output items reported as done, and the whole output at the end. */
  items: Json[];
}

const TERMINAL = ['response.completed', 'response.incomplete', 'response.failed'];

/** Members that every response has. */
const REQUIRED = [
  'completed_at',
  'created_at',
  'error',
  'frequency_penalty',
  'id',
  'incomplete_details',
  'instructions',
  'metadata',
  'model',
  'object',
  'output',
  'parallel_tool_calls',
  'presence_penalty',
  'status',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
];

const blank = (): ServedChoice => ({ text: '', reasoning: '', refusal: '', calls: [], finish: null });

export function readWholeResponse(text: string): ReadResponse {
  const response: Json = JSON.parse(text);
  checkResponse(response);
  assert.ok(['completed', 'incomplete'].includes(response.status), `status ${response.status}`);
  const choice = blank();
  for (const item of response.output) takeItem(choice, item);
  choice.finish = response.incomplete_details?.reason ?? response.status;
  return { choice, response, error: undefined, items: response.output };
}

/** Reads the text of a stream; every violation of the format throws. */
export function readResponseStream(text: string): ReadResponse {
  assert.ok(text.endsWith('data: [DONE]\n\n'), 'no end marker');
  for (const line of text.split('\n')) assert.match(line, /^(event: |data: |:|$)/, `a line outside any field: ${line}`);
  const events = readServerSentEvents(text);
  assert.equal(events.filter(({ data }) => data === '[DONE]').length, 1, 'several end markers');
  const reader = new StreamReader();
  for (const { name, data } of events.slice(0, -1)) {
    const event = JSON.parse(data);
    assert.equal(name, event.type, 'the event name is not its type');
    reader.read(event);
  }
  return reader.end();
}

interface OpenItem {
  item: Json;
  done: boolean;
  /** By place and number. */
  told: Map<string, string>;
}

class StreamReader {
  private sequence = -1;
  private readonly items: OpenItem[] = [];
  private readonly choice = blank();
  private response: Json;
  private error: Json;
  private terminal: string | undefined;

  read(event: Json): void {
    const { type } = event;
    assert.equal(this.terminal, undefined, `${type} behind the terminal event`);
    assert.ok(event.sequence_number > this.sequence, `${type}: number ${event.sequence_number} after ${this.sequence}`);
    if (this.sequence === -1) assert.ok(['response.created', 'error'].includes(type), `${type} comes first`);
    else assert.notEqual(type, 'response.created', 'created twice');
    this.sequence = event.sequence_number;
    if (type === 'error') {
      assert.equal(typeof event.message, 'string');
      this.terminal = type;
      this.error = event;
      this.response ??= { id: null };
      return;
    }
    if (event.response !== undefined) this.readResponse(type, event.response);
    else if (type === 'response.output_item.added') {
      assert.equal(event.output_index, this.items.length, 'items are not added in order');
      assert.equal(typeof event.item.type, 'string');
      this.items.push({ item: event.item, done: false, told: new Map() });
      this.add(event.item);
    } else this.readItemEvent(type, event);
  }

  end(): ReadResponse {
    assert.ok(this.terminal !== undefined, 'no terminal event');
    if (this.terminal !== 'response.failed' && this.terminal !== 'error') {
      assert.ok(
        this.items.every(({ done }) => done),
        'an item was never done',
      );
    }
    const items = this.items.filter(({ done }) => done).map(({ item }) => item);
    return { choice: this.choice, response: this.response, error: this.error, items };
  }

  private readResponse(type: string, response: Json): void {
    checkResponse(response);
    if (this.response !== undefined) assert.equal(response.id, this.response.id, 'the id changes');
    this.response = response;
    if (!TERMINAL.includes(type)) {
      assert.equal(response.status, type === 'response.queued' ? 'queued' : 'in_progress');
      return;
    }
    this.terminal = type;
    assert.equal(response.status, type.replace('response.', ''));
    if (type === 'response.failed') {
      assert.equal(typeof response.error.code, 'string');
      assert.equal(typeof response.error.message, 'string');
      this.error = response.error;
    }
    this.choice.finish = response.incomplete_details?.reason ?? response.status;
  }

  private readItemEvent(type: string, event: Json): void {
    const open = this.items[event.output_index];
    assert.ok(open !== undefined && !open.done, `${type} for an item that is not open`);
    if (type === 'response.output_item.done') {
      open.done = true;
      this.finish(open, event.item);
      return;
    }
    const place =
      event.summary_index === undefined ? `content ${event.content_index}` : `summary ${event.summary_index}`;
    if (type.endsWith('.delta') && typeof event.delta === 'string') {
      assert.notEqual(event.delta, undefined);
      open.told.set(place, (open.told.get(place) ?? '') + event.delta);
    }
    switch (type) {
      case 'response.output_text.delta':
        this.choice.text += event.delta;
        break;
      case 'response.refusal.delta':
        this.choice.refusal += event.delta;
        break;
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        this.choice.reasoning += event.delta;
        break;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.choice.calls.find(({ id }) => id === open.item.call_id)!.arguments += event.delta;
        break;
      case 'response.output_text.done':
      case 'response.reasoning_text.done':
      case 'response.reasoning_summary_text.done':
        if (open.told.has(place)) assert.equal(event.text, open.told.get(place), `${type} is another text`);
        break;
      default:
    }
  }

  private add(item: Json): void {
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call') return;
    assert.ok(item.call_id && item.name, 'a call without id or name');
    this.choice.calls.push({ id: item.call_id, name: item.name, arguments: '' });
  }

  /** The finished item says what its deltas said, and what came without any. */
  private finish({ item: added, told }: OpenItem, item: Json): void {
    assert.equal(item.type, added.type, 'the item became another');
    Object.assign(added, item);
    if (item.type === 'message' || item.type === 'reasoning') {
      const untold = blank();
      takeItem(untold, {
        ...item,
        content: without(item.content, 'content', told),
        summary: without(item.summary, 'summary', told),
      });
      this.choice.text += untold.text;
      this.choice.refusal += untold.refusal;
      this.choice.reasoning += untold.reasoning;
    } else if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      const call = this.choice.calls.find(({ id }) => id === item.call_id)!;
      const whole = item.arguments ?? item.input;
      assert.ok(whole.startsWith(call.arguments), `${call.arguments} became ${whole}`);
      call.arguments = whole;
    }
  }
}

function without(parts: Json[] | undefined, place: string, told: Map<string, string>): Json[] {
  return (parts ?? []).filter((_, index) => !told.has(`${place} ${index}`));
}

function takeItem(choice: ServedChoice, item: Json): void {
  switch (item.type) {
    case 'message':
      assert.equal(item.role, 'assistant');
      for (const part of item.content) {
        if (part.type === 'output_text') choice.text += part.text;
        else if (part.type === 'refusal') choice.refusal += part.refusal;
      }
      break;
    case 'reasoning':
      assert.ok(Array.isArray(item.summary), 'reasoning without a summary');
      for (const part of item.summary) choice.reasoning += part.text;
      for (const part of item.content ?? []) choice.reasoning += part.text;
      break;
    case 'function_call':
    case 'custom_tool_call': {
      assert.ok(item.call_id && item.name, 'a call without id or name');
      const written = item.arguments ?? item.input;
      assert.equal(typeof written, 'string');
      choice.calls.push({ id: item.call_id, name: item.name, arguments: written });
    }
  }
}

function checkResponse(response: Json): void {
  assert.equal(response.object, 'response');
  assert.match(response.id, /^resp_/);
  assert.equal(typeof response.model, 'string');
  if (response.status === 'in_progress') return;
  for (const member of REQUIRED) assert.ok(member in response, `no ${member}`);
  assert.ok(Array.isArray(response.output));
}

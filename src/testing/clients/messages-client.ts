/**
 * A strict client of the messages format, written from the public API reference: it reads an event stream as an SDK would
 * and fails on every violation of the format. It shares no code with `src/formats`.
 */
import assert from 'node:assert/strict';
import { type RecordedEvent, readServerSentEvents } from '../recordings/corpus.ts';

export type Block = Record<string, unknown> & { type: string };

export interface ReadMessage {
  start: Record<string, unknown>;
  content: Block[];
  /** The inputs that came in deltas, as written. */
  inputs: Map<Block, string>;
  stop: { stop_reason: unknown; stop_sequence?: unknown; stop_details?: unknown };
  usage: Record<string, unknown>;
  /** The `message_stop` event. */
  last: Record<string, unknown> | undefined;
  error: Record<string, unknown> | undefined;
}

const DELTA_OF: Record<string, readonly string[]> = {
  text_delta: ['text'],
  citations_delta: ['text'],
  thinking_delta: ['thinking'],
  signature_delta: ['thinking'],
  input_json_delta: ['tool_use', 'server_tool_use', 'mcp_tool_use'],
  compaction_delta: ['compaction'],
};

const STOP_REASONS = [
  'end_turn',
  'max_tokens',
  'model_context_window_exceeded',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'compaction',
];

/** Reads the text of a stream; every violation of the format throws. */
export function readMessageStream(text: string): ReadMessage {
  assert.ok(text === '' || text.endsWith('\n\n'), 'the last event is not complete');
  for (const line of text.split('\n')) assert.match(line, /^(event: |data: |:|$)/, `a line outside any field: ${line}`);
  const events = readServerSentEvents(text).map(({ name, data }) => {
    const value = JSON.parse(data);
    assert.equal(name, value.type, 'the event name is not its type');
    return value as Record<string, unknown>;
  });
  const message = readEvents(events, true);
  assert.ok(message.error !== undefined || message.last !== undefined, 'neither message_stop nor an error');
  return message;
}

/** The content of a recording, by the same reading but without insisting on the format. */
export function readRecordedEvents(events: readonly RecordedEvent[]): ReadMessage {
  return readEvents(
    events.map((event) => JSON.parse(event.data)),
    false,
  );
}

interface State {
  message: ReadMessage;
  open: { index: unknown; block: Block; input: string } | undefined;
  deltas: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

function readEvents(events: readonly Json[], strict: boolean): ReadMessage {
  const message: ReadMessage = {
    start: {},
    content: [],
    inputs: new Map(),
    stop: { stop_reason: null },
    usage: {},
    last: undefined,
    error: undefined,
  };
  const state: State = { message, open: undefined, deltas: 0 };
  let started = false;
  for (const event of events) {
    if (strict) {
      assert.equal(message.last, undefined, `${event.type} after message_stop`);
      assert.equal(message.error, undefined, `${event.type} after the error`);
      if (event.type !== 'ping' && event.type !== 'error') {
        assert.equal(event.type === 'message_start', !started, `${event.type}: message_start comes once and first`);
      }
    }
    if (event.type === 'message_start') started = true;
    readEvent(state, event, strict);
  }
  if (strict && message.error === undefined) {
    assert.equal(state.deltas, 1, 'message_delta comes once');
    assert.ok(STOP_REASONS.includes(message.stop.stop_reason as string), `stop_reason ${message.stop.stop_reason}`);
    assert.ok(Number.isInteger(message.usage['input_tokens']), 'no input_tokens');
    assert.ok(Number.isInteger(message.usage['output_tokens']), 'no output_tokens');
  }
  return message;
}

function readEvent(state: State, event: Json, strict: boolean): void {
  const { message } = state;
  switch (event.type) {
    case 'message_start': {
      const { content, usage, ...rest } = event.message;
      message.start = rest;
      message.content.push(...content);
      takeUsage(message, usage);
      if (rest.stop_reason) message.stop = rest;
      if (strict) {
        assert.equal(rest.type, 'message');
        assert.equal(rest.role, 'assistant');
        assert.equal(typeof rest.id, 'string');
      }
      return;
    }
    case 'content_block_start':
      if (strict) assert.equal(state.open, undefined, 'a block opened inside another');
      if (strict) assert.equal(event.index, message.content.length, 'the index of a block is not the next one');
      state.open = { index: event.index, block: { ...event.content_block }, input: '' };
      message.content.push(state.open.block);
      return;
    case 'content_block_delta':
      assert.ok(state.open !== undefined && state.open.index === event.index, 'a delta for a block that is not open');
      readDelta(state.open, event.delta, strict);
      if (state.open.input !== '') message.inputs.set(state.open.block, state.open.input);
      return;
    case 'content_block_stop':
      assert.equal(state.open?.index, event.index, 'the stop of a block that is not open');
      if (state.open && state.open.input !== '') state.open.block['input'] = JSON.parse(state.open.input);
      if (strict) checkBlock(state.open?.block);
      state.open = undefined;
      return;
    case 'message_delta':
      if (strict) assert.equal(state.open, undefined, 'message_delta inside a block');
      state.deltas += 1;
      message.stop = event.delta;
      takeUsage(message, event.usage);
      return;
    case 'message_stop':
      message.last = event;
      return;
    case 'error':
      assert.equal(typeof event.error.type, 'string');
      assert.equal(typeof event.error.message, 'string');
      message.error = event.error;
  }
}

function readDelta(open: { block: Block; input: string }, delta: Json, strict: boolean): void {
  const { block } = open;
  if (strict) assert.ok(DELTA_OF[delta.type]?.includes(block.type), `${delta.type} in a ${block.type} block`);
  const append = (key: string, piece: string) => {
    block[key] = ((block[key] as string | null | undefined) ?? '') + piece;
  };
  if (delta.type === 'text_delta') append('text', delta.text);
  else if (delta.type === 'thinking_delta') append('thinking', delta.thinking);
  else if (delta.type === 'signature_delta') append('signature', delta.signature);
  else if (delta.type === 'input_json_delta') open.input += delta.partial_json;
  else if (delta.type === 'citations_delta') {
    block['citations'] = [...((block['citations'] as unknown[] | null | undefined) ?? []), delta.citation];
  } else if (delta.type === 'compaction_delta') {
    for (const [key, value] of Object.entries(delta)) if (key !== 'type' && value !== null) append(key, String(value));
  }
}

function checkBlock(block: Block | undefined): void {
  if (block?.type === 'thinking') assert.equal(typeof block['signature'], 'string', 'thinking without a signature');
  if (block?.type === 'text') assert.equal(typeof block['text'], 'string', 'a text block without text');
  if (block?.type === 'tool_use') {
    assert.ok(block['id'] && block['name'], 'tool_use without id or name');
    assert.ok(block['input'] !== null && typeof block['input'] === 'object', 'the input is no object');
  }
}

function takeUsage(message: ReadMessage, usage: Record<string, unknown> | undefined): void {
  for (const [key, value] of Object.entries(usage ?? {})) if (value !== null) message.usage[key] = value;
}

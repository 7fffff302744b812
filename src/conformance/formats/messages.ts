/** Anthropic's messages. */
import {
  type Arrived,
  type ArrivedTurn,
  type Asked,
  type Call,
  demand,
  emptyHeard,
  type Frame,
  type Heard,
  parsed,
  type Said,
  type Stop,
  type StreamEvent,
  type Turn,
  type Usage,
  type WireFormat,
} from './dialogue.ts';
import { type Fields, fields, list, number, plainText, text } from './loose.ts';

const HEAD = { id: 'msg_conformance', type: 'message', role: 'assistant', model: 'messages-model' };
const FINISH: Readonly<Record<Stop, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  calls: 'tool_use',
  refusal: 'refusal',
};
const STOPS: Readonly<Record<string, Stop>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'calls',
  refusal: 'refusal',
};
const DEFAULT_MAX_TOKENS = 4096;
const THINKING_TOKENS = 1024;
const EVENT_OR_INPUT = 'an event or the input of a tool';

export const messages: WireFormat = {
  ...{ name: 'messages', path: '/messages' },
  request,
  arrived,
  whole,
  frames,
  readWhole,
  readStream,
  failure: (message) => ({ kind: 'finish', text: event({ type: 'error', error: { type: 'api_error', message } }) }),
  errorOf(body) {
    const { type, error } = fields(body);
    const { message } = fields(error);
    return type === 'error' && typeof message === 'string' ? message : undefined;
  },
};

function request(asked: Asked, model: string, stream: boolean): Record<string, unknown> {
  return {
    model,
    max_tokens: asked.maxTokens ?? DEFAULT_MAX_TOKENS,
    ...(asked.system !== undefined && { system: asked.system }),
    messages: asked.turns.map(messageOf),
    ...(asked.tools && {
      tools: asked.tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    }),
    ...(asked.choice && { tool_choice: { type: 'tool', name: asked.choice } }),
    ...(asked.temperature !== undefined && { temperature: asked.temperature }),
    ...(asked.stop && { stop_sequences: [asked.stop] }),
    ...(asked.effort && { thinking: { type: 'enabled', budget_tokens: THINKING_TOKENS } }),
    ...(stream && { stream: true }),
  };
}

function messageOf(turn: Turn): unknown {
  switch (turn.role) {
    case 'user': {
      if (turn.image === undefined) return { role: 'user', content: turn.text };
      const source = { type: 'base64', media_type: 'image/png', data: turn.image };
      const image = { type: 'image', source };
      return { role: 'user', content: [{ type: 'text', text: turn.text }, image] };
    }
    case 'assistant': {
      const said = turn.text ? [{ type: 'text', text: turn.text }] : [];
      return { role: 'assistant', content: [...said, ...turn.calls.map(callOf)] };
    }
    case 'echo':
      return { role: 'assistant', content: turn.answer };
    case 'results': {
      const content = turn.results.map(({ id, text: said }) => ({
        ...{ type: 'tool_result', tool_use_id: id },
        content: said,
      }));
      return { role: 'user', content };
    }
  }
}

function callOf({ id, name, arguments: args }: Call): object {
  return { type: 'tool_use', id, name, input: JSON.parse(args) };
}

function arrived(body: unknown): Arrived {
  const from = fields(body);
  const { type, name } = fields(from['tool_choice']);
  const thinking = fields(from['thinking'])['type'];
  return {
    system: plainText(from['system']),
    turns: list(from['messages']).flatMap((message) => turnsOf(fields(message))),
    tools: list(from['tools']).map((tool) => {
      const { name: called, description, input_schema: schema } = fields(tool);
      return { name: text(called), description: text(description), parameters: fields(schema) };
    }),
    choice: type === 'tool' ? text(name) : undefined,
    maxTokens: number(from['max_tokens']),
    temperature: number(from['temperature']),
    stop: text(list(from['stop_sequences'])[0]) || undefined,
    reasons: thinking === 'enabled' || thinking === 'adaptive',
  };
}

/** Results are a turn of their own, also where a message holds both. */
function turnsOf(message: Fields): ArrivedTurn[] {
  const blocks = list(message['content']).map(fields);
  const results = blocks
    .filter(({ type }) => type === 'tool_result')
    .map((block) => ({ id: text(block['tool_use_id']), text: plainText(block['content']) }));
  const said: ArrivedTurn = {
    role: message['role'] === 'assistant' ? 'assistant' : 'user',
    text: typeof message['content'] === 'string' ? message['content'] : textOf(blocks),
    images: blocks.flatMap((block) => (block['type'] === 'image' ? [text(fields(block['source'])['data'])] : [])),
    calls: readCalls(blocks),
    results: [],
  };
  const isEmpty = said.text === '' && said.images.length === 0 && said.calls.length === 0;
  return [
    ...(results.length > 0 ? [{ role: 'results' as const, text: '', images: [], calls: [], results }] : []),
    ...(results.length > 0 && isEmpty ? [] : [said]),
  ];
}

function textOf(blocks: readonly Fields[]): string {
  return plainText(blocks.filter(({ type }) => type === 'text'));
}

function readCalls(blocks: readonly Fields[]): Call[] {
  return blocks
    .filter(({ type }) => type === 'tool_use')
    .map(({ id, name, input }) => ({ id: text(id), name: text(name), arguments: JSON.stringify(input) }));
}

function blocksOf(said: Said): object[] {
  return [
    ...(said.reasoning ? [{ type: 'thinking', thinking: said.reasoning, signature: said.signature }] : []),
    ...(said.text || said.refusal ? [{ type: 'text', text: said.text + said.refusal }] : []),
    ...said.calls.map(callOf),
  ];
}

function usageOf({ input, cached, output }: Usage): object {
  const counts = { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output };
  return { ...counts, cache_creation_input_tokens: 0 };
}

function whole(said: Said): object {
  const end = { stop_reason: FINISH[said.stop], stop_sequence: null };
  return { ...HEAD, content: blocksOf(said), ...end, usage: usageOf(said.usage) };
}

function frames(said: Said, pieces: readonly string[]): Frame[] {
  const frame = (kind: Frame['kind'], value: { type: string; [member: string]: unknown }): Frame => ({
    kind,
    text: event(value),
  });
  let index = -1;
  const block = (start: object, deltas: readonly object[]): Frame[] => {
    index += 1;
    return [
      frame('delta', { type: 'content_block_start', index, content_block: start }),
      ...deltas.map((delta) => frame('delta', { type: 'content_block_delta', index, delta })),
      frame('delta', { type: 'content_block_stop', index }),
    ];
  };
  const parts = said.refusal ? [...pieces, said.refusal] : pieces;
  const opening = { ...HEAD, content: [], stop_reason: null, stop_sequence: null };
  const usage = usageOf({ ...said.usage, output: 1 });
  const end = { stop_reason: FINISH[said.stop], stop_sequence: null };
  return [
    frame('open', { type: 'message_start', message: { ...opening, usage } }),
    ...(said.reasoning
      ? block({ type: 'thinking', thinking: '', signature: '' }, [
          { type: 'thinking_delta', thinking: said.reasoning },
          { type: 'signature_delta', signature: said.signature },
        ])
      : []),
    ...(parts.length > 0
      ? block(
          { type: 'text', text: '' },
          parts.map((part) => ({ type: 'text_delta', text: part })),
        )
      : []),
    ...said.calls.flatMap(({ id, name, arguments: args }) => {
      const half = Math.ceil(args.length / 2);
      const halves = [args.slice(0, half), args.slice(half)];
      return block(
        { type: 'tool_use', id, name, input: {} },
        halves.map((part) => ({ type: 'input_json_delta', partial_json: part })),
      );
    }),
    frame('finish', { type: 'message_delta', delta: end, usage: usageOf(said.usage) }),
    frame('end', { type: 'message_stop' }),
  ];
}

function event(value: { type: string; [member: string]: unknown }): string {
  return `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}

function readWhole(body: unknown): Heard {
  const from = fields(body);
  demand(from['type'] === 'message' && from['role'] === 'assistant', 'not a message of the assistant');
  demand(Array.isArray(from['content']), 'content is not a list');
  const stop = text(from['stop_reason']);
  return {
    ...emptyHeard(),
    ...contentOf(list(from['content']).map(fields)),
    ...{ stop: STOPS[stop], stopText: stop },
    ...readUsage(from['usage']),
    echo: from['content'],
  };
}

function contentOf(blocks: readonly Fields[]): Pick<Heard, 'text' | 'reasoning' | 'signature' | 'calls'> {
  const thinking = blocks.filter(({ type }) => type === 'thinking');
  return {
    text: textOf(blocks),
    reasoning: thinking.map((block) => text(block['thinking'])).join(''),
    signature: thinking.map((block) => text(block['signature'])).join(''),
    calls: readCalls(blocks),
  };
}

function readUsage(value: unknown): Pick<Heard, 'usage' | 'cost'> {
  const from = fields(value);
  const fresh = number(from['input_tokens']);
  if (fresh === undefined) return { usage: undefined, cost: undefined };
  const cached = number(from['cache_read_input_tokens']) ?? 0;
  const usage = {
    input: fresh + cached + (number(from['cache_creation_input_tokens']) ?? 0),
    ...{ cached, output: number(from['output_tokens']) ?? 0, reasoning: undefined },
  };
  return { usage, cost: number(from['cost']) };
}

/** The blocks of a stream as they grow. */
class Blocks {
  readonly done: Record<string, unknown>[] = [];
  #open: Record<string, unknown> | undefined;
  #input = '';

  read(kind: string, from: Fields): void {
    if (kind === 'content_block_start') {
      demand(this.#open === undefined, 'a block starts within another');
      demand(from['index'] === this.done.length, `block ${from['index']} follows ${this.done.length} blocks`);
      this.#open = { ...fields(from['content_block']) };
      this.#input = '';
    } else if (kind === 'content_block_delta') {
      demand(this.#open !== undefined, 'a delta has no block');
      this.#grow(this.#open, fields(from['delta']));
    } else {
      demand(this.#open !== undefined, 'a block ends that did not start');
      if (this.#open['type'] === 'tool_use') this.#open['input'] = parsed(this.#input || '{}', EVENT_OR_INPUT);
      this.done.push(this.#open);
      this.#open = undefined;
    }
  }

  /** With the one that is open. */
  get all(): Record<string, unknown>[] {
    return this.#open === undefined ? this.done : [...this.done, this.#open];
  }

  #grow(block: Record<string, unknown>, delta: Fields): void {
    for (const member of ['text', 'thinking', 'signature']) {
      if (typeof delta[member] === 'string') block[member] = text(block[member]) + delta[member];
    }
    this.#input += text(delta['partial_json']);
  }
}

function readStream(events: readonly StreamEvent[]): Heard {
  const heard = emptyHeard();
  const blocks = new Blocks();
  let counts: Fields = {};
  let isOver = false;
  for (const { name, data } of events) {
    const from = parsed(data, EVENT_OR_INPUT);
    const type = text(from['type']);
    demand(name === type, `event ${name} has the type ${type}`);
    demand(!isOver, `${type} follows the end`);
    if (type === 'message_start') {
      counts = fields(fields(from['message'])['usage']);
    } else if (type.startsWith('content_block_')) {
      demand(heard.stop === undefined, 'content follows stop_reason');
      blocks.read(type, from);
    } else if (type === 'message_delta') {
      counts = { ...counts, ...fields(from['usage']) };
      heard.stopText = text(fields(from['delta'])['stop_reason']);
      heard.stop = STOPS[heard.stopText];
    } else if (type === 'message_stop') {
      isOver = true;
    } else if (type === 'error') {
      heard.error = text(fields(from['error'])['message']) || 'an error without a message';
    }
  }
  if (!isOver) heard.stop = undefined;
  return { ...heard, ...contentOf(blocks.all), ...readUsage(counts), echo: blocks.done };
}

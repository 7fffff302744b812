/** Chat completions. */
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
import { dataOf, type Fields, fields, list, number, plainText, text } from './loose.ts';
import { errorOf, instructs } from './openai.ts';

const HEAD = { id: 'chatcmpl-conformance', created: 1_760_000_000, model: 'chat-model' };
const FINISH: Readonly<Record<Stop, string>> = {
  stop: 'stop',
  length: 'length',
  calls: 'tool_calls',
  refusal: 'stop',
};
const STOPS: Readonly<Record<string, Stop>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'calls',
  content_filter: 'refusal',
};

export const chat: WireFormat = {
  ...{ name: 'chat', path: '/chat/completions' },
  request,
  arrived,
  whole,
  frames,
  readWhole,
  readStream,
  failure: (message) => ({ kind: 'finish', text: event({ error: { message, type: 'server_error', code: 500 } }) }),
  errorOf,
};

function request(asked: Asked, model: string, stream: boolean): Record<string, unknown> {
  return {
    model,
    messages: [
      ...(asked.system === undefined ? [] : [{ role: 'system', content: asked.system }]),
      ...asked.turns.flatMap(messagesOf),
    ],
    ...(asked.tools && { tools: asked.tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(asked.choice && { tool_choice: { type: 'function', function: { name: asked.choice } } }),
    ...(asked.maxTokens && { max_tokens: asked.maxTokens }),
    ...(asked.temperature !== undefined && { temperature: asked.temperature }),
    ...(asked.stop && { stop: [asked.stop] }),
    ...(asked.effort && { reasoning_effort: asked.effort }),
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  };
}

function messagesOf(turn: Turn): unknown[] {
  switch (turn.role) {
    case 'user': {
      if (turn.image === undefined) return [{ role: 'user', content: turn.text }];
      const url = `data:image/png;base64,${turn.image}`;
      const image = { type: 'image_url', image_url: { url } };
      return [{ role: 'user', content: [{ type: 'text', text: turn.text }, image] }];
    }
    case 'assistant': {
      const calls = turn.calls.map(callOf);
      return [{ role: 'assistant', content: turn.text || null, ...(calls.length > 0 && { tool_calls: calls }) }];
    }
    case 'echo':
      return [turn.answer];
    case 'results':
      return turn.results.map(({ id, text: content }) => ({ role: 'tool', tool_call_id: id, content }));
  }
}

function callOf({ id, name, arguments: args }: Call): object {
  return { id, type: 'function', function: { name, arguments: args } };
}

function arrived(body: unknown): Arrived {
  const from = fields(body);
  const messages = list(from['messages']).map(fields);
  const choice = text(fields(fields(from['tool_choice'])['function'])['name']);
  const stop = typeof from['stop'] === 'string' ? from['stop'] : text(list(from['stop'])[0]);
  return {
    system: messages
      .filter(instructs)
      .map(({ content }) => plainText(content))
      .join('\n'),
    turns: messages.filter((message) => !instructs(message)).map(turnOf),
    tools: list(from['tools']).map((tool) => {
      const { name, description, parameters } = fields(fields(tool)['function']);
      return { name: text(name), description: text(description), parameters: fields(parameters) };
    }),
    choice: choice || undefined,
    maxTokens: number(from['max_tokens']) ?? number(from['max_completion_tokens']),
    temperature: number(from['temperature']),
    stop: stop || undefined,
    reasons: ['reasoning_effort', 'reasoning', 'thinking', 'enable_thinking'].some((name) => from[name] != null),
  };
}

function turnOf(message: Fields): ArrivedTurn {
  const content = plainText(message['content']);
  if (message['role'] === 'tool') {
    const results = [{ id: text(message['tool_call_id']), text: content }];
    return { role: 'results', text: '', images: [], calls: [], results };
  }
  const images = list(message['content']).flatMap((part) => {
    const url = text(fields(fields(part)['image_url'])['url']);
    return url ? [dataOf(url)] : [];
  });
  const role = message['role'] === 'assistant' ? 'assistant' : 'user';
  return { role, text: content, images, calls: readCalls(message), results: [] };
}

function readCalls(message: Fields): Call[] {
  return list(message['tool_calls']).map((call) => {
    const { name, arguments: args } = fields(fields(call)['function']);
    return { id: text(fields(call)['id']), name: text(name), arguments: text(args) };
  });
}

function whole(said: Said): object {
  const message = {
    role: 'assistant',
    content: said.text || null,
    refusal: said.refusal || null,
    ...(said.reasoning && { reasoning_content: said.reasoning }),
    ...(said.calls.length > 0 && { tool_calls: said.calls.map(callOf) }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: FINISH[said.stop] };
  return { ...HEAD, object: 'chat.completion', choices: [choice], usage: usageOf(said.usage) };
}

function usageOf({ input, cached, output, reasoning = 0 }: Usage): object {
  return {
    ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    ...{ prompt_tokens_details: { cached_tokens: cached }, completion_tokens_details: { reasoning_tokens: reasoning } },
  };
}

function frames(said: Said, pieces: readonly string[]): Frame[] {
  const chunk = (kind: Frame['kind'], delta: object, finish: string | null = null): Frame => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return { kind, text: event({ ...HEAD, object: 'chat.completion.chunk', choices, usage: null }) };
  };
  const usage = { ...HEAD, object: 'chat.completion.chunk', choices: [], usage: usageOf(said.usage) };
  return [
    chunk('open', { role: 'assistant', content: '' }),
    ...(said.reasoning ? [chunk('delta', { reasoning_content: said.reasoning })] : []),
    ...pieces.map((content) => chunk('delta', { content })),
    ...(said.refusal ? [chunk('delta', { refusal: said.refusal })] : []),
    ...said.calls.flatMap((call, index) => {
      const { id, name, arguments: args } = call;
      const half = Math.ceil(args.length / 2);
      const part = (more: string) => ({ tool_calls: [{ index, function: { arguments: more } }] });
      return [
        chunk('delta', { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
        chunk('delta', part(args.slice(0, half))),
        chunk('delta', part(args.slice(half))),
      ];
    }),
    chunk('finish', {}, FINISH[said.stop]),
    { kind: 'end', text: event(usage) },
    { kind: 'end', text: 'data: [DONE]\n\n' },
  ];
}

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function readWhole(body: unknown): Heard {
  const from = fields(body);
  demand(list(from['choices']).length === 1, 'not one choice');
  const choice = fields(list(from['choices'])[0]);
  const message = fields(choice['message']);
  demand(message['role'] === 'assistant', 'message.role is not assistant');
  const finish = text(choice['finish_reason']);
  return {
    ...emptyHeard(),
    ...{ text: text(message['content']), refusal: text(message['refusal']) },
    reasoning: text(message['reasoning']) || text(message['reasoning_content']),
    calls: readCalls(message),
    ...{ stop: STOPS[finish], stopText: finish },
    ...readUsage(from['usage']),
    echo: message,
  };
}

function readUsage(value: unknown): Pick<Heard, 'usage' | 'cost'> {
  const from = fields(value);
  const input = number(from['prompt_tokens']);
  if (input === undefined) return { usage: undefined, cost: undefined };
  const usage = {
    input,
    cached: number(fields(from['prompt_tokens_details'])['cached_tokens']) ?? 0,
    output: number(from['completion_tokens']) ?? 0,
    reasoning: number(fields(from['completion_tokens_details'])['reasoning_tokens']) ?? 0,
  };
  return { usage, cost: number(from['cost']) };
}

function readStream(events: readonly StreamEvent[]): Heard {
  const heard = emptyHeard();
  const calls: Call[] = [];
  let isDone = false;
  for (const { data } of events) {
    demand(!isDone, 'an event follows [DONE]');
    if (data === '[DONE]') {
      isDone = true;
      continue;
    }
    const chunk = parsed(data);
    if (chunk['error'] != null) {
      heard.error = text(fields(chunk['error'])['message']) || 'an error without a message';
      continue;
    }
    Object.assign(heard, chunk['usage'] == null ? {} : readUsage(chunk['usage']));
    for (const choice of list(chunk['choices']).map(fields)) readChoice(choice, heard, calls);
  }
  // What a client of this format takes for a complete answer.
  if (!isDone && heard.error === undefined) heard.stop = undefined;
  return { ...heard, calls };
}

function readChoice(choice: Fields, heard: Heard, calls: Call[]): void {
  const delta = fields(choice['delta']);
  const said = text(delta['content']) + text(delta['refusal']);
  demand(heard.stop === undefined || said === '', 'text follows finish_reason');
  heard.text += text(delta['content']);
  heard.refusal += text(delta['refusal']);
  heard.reasoning += text(delta['reasoning']) || text(delta['reasoning_content']);
  for (const part of list(delta['tool_calls']).map(fields)) {
    const index = number(part['index']);
    demand(index !== undefined, 'a tool call has no index');
    demand(index <= calls.length, `tool call ${index} follows tool call ${calls.length - 1}`);
    const call = calls[index] ?? { id: '', name: '', arguments: '' };
    calls[index] = call;
    call.id ||= text(part['id']);
    call.name ||= text(fields(part['function'])['name']);
    call.arguments += text(fields(part['function'])['arguments']);
  }
  if (choice['finish_reason'] != null) {
    heard.stopText = text(choice['finish_reason']);
    heard.stop = STOPS[heard.stopText];
  }
}

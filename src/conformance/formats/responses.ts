/** OpenAI's responses. */
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

const HEAD = {
  ...{ id: 'resp_conformance', object: 'response', created_at: 1_760_000_000, model: 'responses-model', error: null },
  ...{ instructions: null, metadata: {}, parallel_tool_calls: true, temperature: 1, top_p: 1 },
  ...{ tool_choice: 'auto', tools: [] },
};
const MESSAGE_ID = 'msg_conformance';
const REASONING_ID = 'rs_conformance';

export const responses: WireFormat = {
  ...{ name: 'responses', path: '/responses' },
  request,
  arrived,
  whole,
  frames,
  readWhole,
  readStream,
  failure: (message) => ({
    kind: 'finish',
    text: event(0, { type: 'error', code: 'server_error', message, param: null }),
  }),
  errorOf,
};

function request(asked: Asked, model: string, stream: boolean): Record<string, unknown> {
  return {
    model,
    store: false,
    ...(asked.system !== undefined && { instructions: asked.system }),
    input: asked.turns.flatMap(itemsOf),
    ...(asked.tools && {
      tools: asked.tools.map((tool) => ({ type: 'function', ...tool, strict: false })),
    }),
    ...(asked.choice && { tool_choice: { type: 'function', name: asked.choice } }),
    ...(asked.maxTokens && { max_output_tokens: asked.maxTokens }),
    ...(asked.temperature !== undefined && { temperature: asked.temperature }),
    ...(asked.effort && {
      reasoning: { effort: asked.effort, summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    }),
    ...(stream && { stream: true }),
  };
}

function itemsOf(turn: Turn): readonly unknown[] {
  switch (turn.role) {
    case 'user': {
      const image_url = `data:image/png;base64,${turn.image}`;
      const images = turn.image === undefined ? [] : [{ type: 'input_image', detail: 'auto', image_url }];
      return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: turn.text }, ...images] }];
    }
    case 'assistant': {
      const content = [{ type: 'output_text', text: turn.text, annotations: [] }];
      const said = turn.text ? [{ type: 'message', role: 'assistant', content }] : [];
      const calls = turn.calls.map(({ id, name, arguments: args }) => ({
        ...{ type: 'function_call', call_id: id, name, arguments: args },
      }));
      return [...said, ...calls];
    }
    case 'echo':
      return list(turn.answer);
    case 'results':
      return turn.results.map(({ id, text: output }) => ({ type: 'function_call_output', call_id: id, output }));
  }
}

function arrived(body: unknown): Arrived {
  const from = fields(body);
  const input = from['input'];
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : list(input).map(fields);
  const systems = items.filter(instructs).map(({ content }) => plainText(content));
  return {
    system: [text(from['instructions']), ...systems].filter(Boolean).join('\n'),
    turns: items.filter((item) => !instructs(item)).flatMap(turnOf),
    tools: list(from['tools']).map((tool) => {
      const { name, description, parameters } = fields(tool);
      return { name: text(name), description: text(description), parameters: fields(parameters) };
    }),
    choice: text(fields(from['tool_choice'])['name']) || undefined,
    maxTokens: number(from['max_output_tokens']),
    temperature: number(from['temperature']),
    // The format has no stop sequences.
    stop: undefined,
    reasons: text(fields(from['reasoning'])['effort']) !== '',
  };
}

function turnOf(item: Fields): ArrivedTurn[] {
  const empty = { text: '', images: [], calls: [], results: [] };
  if (item['type'] === 'function_call') return [{ ...empty, role: 'assistant', calls: [callOf(item)] }];
  if (item['type'] === 'function_call_output') {
    return [{ ...empty, role: 'results', results: [{ id: text(item['call_id']), text: plainText(item['output']) }] }];
  }
  if (item['type'] !== undefined && item['type'] !== 'message') return [];
  const images = list(item['content']).flatMap((part) => {
    const url = text(fields(part)['image_url']);
    return url ? [dataOf(url)] : [];
  });
  const role = item['role'] === 'assistant' ? 'assistant' : 'user';
  return [{ ...empty, role, text: plainText(item['content']), images }];
}

function callOf(item: Fields): Call {
  return { id: text(item['call_id']), name: text(item['name']), arguments: text(item['arguments']) };
}

function outputOf(said: Said): Fields[] {
  const content = [
    ...(said.text ? [{ type: 'output_text', text: said.text, annotations: [] }] : []),
    ...(said.refusal ? [{ type: 'refusal', refusal: said.refusal }] : []),
  ];
  const isCut = said.stop === 'length';
  const status = isCut ? 'incomplete' : 'completed';
  return [
    ...(said.reasoning ? [reasoningOf(said)] : []),
    ...(content.length > 0 ? [{ id: MESSAGE_ID, type: 'message', role: 'assistant', status, content }] : []),
    ...said.calls.map((call, index) => ({
      ...{ id: `fc_${index}`, type: 'function_call', status: 'completed', call_id: call.id },
      ...{ name: call.name, arguments: call.arguments },
    })),
  ];
}

function reasoningOf({ reasoning, signature }: Said): Fields {
  const summary = [{ type: 'summary_text', text: reasoning }];
  return { id: REASONING_ID, type: 'reasoning', summary, encrypted_content: signature || null };
}

function whole(said: Said): object {
  const isCut = said.stop === 'length';
  return {
    ...HEAD,
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: outputOf(said),
    usage: usageOf(said.usage),
  };
}

function usageOf({ input, cached, output, reasoning = 0 }: Usage): object {
  return {
    ...{ input_tokens: input, input_tokens_details: { cached_tokens: cached } },
    ...{ output_tokens: output, output_tokens_details: { reasoning_tokens: reasoning } },
    total_tokens: input + output,
  };
}

function frames(said: Said, pieces: readonly string[]): Frame[] {
  let sequence = 0;
  const frame = (kind: Frame['kind'], type: string, more: object): Frame => ({
    kind,
    text: event(sequence++, { type, ...more }),
  });
  const opening = { ...HEAD, status: 'in_progress', incomplete_details: null, output: [], usage: null };
  const items = outputOf(said).flatMap((item, at) => itemFrames(item, at, pieces, frame));
  const end = said.stop === 'length' ? 'response.incomplete' : 'response.completed';
  return [
    frame('open', 'response.created', { response: opening }),
    frame('open', 'response.in_progress', { response: opening }),
    ...items,
    frame('finish', end, { response: whole(said) }),
  ];
}

type MakeFrame = (kind: Frame['kind'], type: string, more: object) => Frame;

function itemFrames(item: Fields, at: number, pieces: readonly string[], frame: MakeFrame): Frame[] {
  const where = { item_id: item['id'], output_index: at };
  const added = (open: object) => frame('delta', 'response.output_item.added', { output_index: at, item: open });
  const done = () => frame('delta', 'response.output_item.done', { output_index: at, item });
  if (item['type'] === 'function_call') {
    const args = text(item['arguments']);
    const half = Math.ceil(args.length / 2);
    return [
      added({ ...item, status: 'in_progress', arguments: '' }),
      frame('delta', 'response.function_call_arguments.delta', { ...where, delta: args.slice(0, half) }),
      frame('delta', 'response.function_call_arguments.delta', { ...where, delta: args.slice(half) }),
      frame('delta', 'response.function_call_arguments.done', { ...where, name: item['name'], arguments: args }),
      done(),
    ];
  }
  if (item['type'] === 'reasoning') {
    const [part] = list(item['summary']);
    const place = { ...where, summary_index: 0 };
    const { text: thought } = fields(part);
    return [
      added({ ...item, summary: [], encrypted_content: null }),
      frame('delta', 'response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } }),
      frame('delta', 'response.reasoning_summary_text.delta', { ...place, delta: thought }),
      frame('delta', 'response.reasoning_summary_text.done', { ...place, text: thought }),
      frame('delta', 'response.reasoning_summary_part.done', { ...place, part }),
      done(),
    ];
  }
  return [
    added({ ...item, status: 'in_progress', content: [] }),
    ...list(item['content']).flatMap((part, index) =>
      partFrames(fields(part), { ...where, content_index: index }, pieces, frame),
    ),
    done(),
  ];
}

function partFrames(part: Fields, place: object, pieces: readonly string[], frame: MakeFrame): Frame[] {
  const isText = part['type'] === 'output_text';
  const name = isText ? 'output_text' : 'refusal';
  const deltas = isText ? pieces : [text(part['refusal'])];
  const empty = isText ? { ...part, text: '' } : { ...part, refusal: '' };
  return [
    frame('delta', 'response.content_part.added', { ...place, part: empty }),
    ...deltas.map((delta) =>
      frame('delta', `response.${name}.delta`, { ...place, delta, ...(isText && { logprobs: [] }) }),
    ),
    frame('delta', `response.${name}.done`, {
      ...place,
      ...(isText ? { text: part['text'] } : { refusal: part['refusal'] }),
    }),
    frame('delta', 'response.content_part.done', { ...place, part }),
  ];
}

function event(sequence: number, value: { type: string; [member: string]: unknown }): string {
  return `event: ${value.type}\ndata: ${JSON.stringify({ ...value, sequence_number: sequence })}\n\n`;
}

function readWhole(body: unknown): Heard {
  const from = fields(body);
  demand(from['object'] === 'response', 'object is not response');
  const output = list(from['output']).map(fields);
  const contents = output.flatMap((item) => (item['type'] === 'message' ? list(item['content']).map(fields) : []));
  const refusal = contents.map((part) => text(part['refusal'])).join('');
  const thoughts = output.filter(({ type }) => type === 'reasoning');
  const calls = output.filter(({ type }) => type === 'function_call').map(callOf);
  const { stop, stopText } = stopOf(from, calls.length > 0, refusal !== '');
  const failure = from['status'] === 'failed' ? text(fields(from['error'])['message']) || 'failed' : undefined;
  return {
    ...emptyHeard(),
    text: contents.map((part) => (part['type'] === 'output_text' ? text(part['text']) : '')).join(''),
    reasoning: thoughts.map((item) => plainText(item['summary']) || plainText(item['content'])).join(''),
    signature: thoughts.map((item) => text(item['encrypted_content'])).join(''),
    ...{ refusal, calls, stop, stopText, error: failure },
    ...readUsage(from['usage']),
    echo: output,
  };
}

function stopOf(response: Fields, hasCalls: boolean, isRefused: boolean): { stop: Stop | undefined; stopText: string } {
  const status = text(response['status']);
  const reason = text(fields(response['incomplete_details'])['reason']);
  const stopText = reason || status;
  if (status === 'incomplete') return { stop: reason === 'content_filter' ? 'refusal' : 'length', stopText };
  if (status !== 'completed') return { stop: undefined, stopText };
  if (isRefused) return { stop: 'refusal', stopText };
  return { stop: hasCalls ? 'calls' : 'stop', stopText };
}

function readUsage(value: unknown): Pick<Heard, 'usage' | 'cost'> {
  const from = fields(value);
  const input = number(from['input_tokens']);
  if (input === undefined) return { usage: undefined, cost: undefined };
  const usage = {
    input,
    cached: number(fields(from['input_tokens_details'])['cached_tokens']) ?? 0,
    output: number(from['output_tokens']) ?? 0,
    reasoning: number(fields(from['output_tokens_details'])['reasoning_tokens']) ?? 0,
  };
  return { usage, cost: number(from['cost']) };
}

function readStream(events: readonly StreamEvent[]): Heard {
  let heard = emptyHeard();
  let last: Heard | undefined;
  let started = false;
  for (const { name, data } of events) {
    if (data === '[DONE]') continue;
    const from = parsed(data);
    const type = text(from['type']);
    demand(name === undefined || name === type, `event ${name} has the type ${type}`);
    demand(last === undefined, `${type} follows the end`);
    demand(
      started || ['response.created', 'response.failed', 'error'].includes(type),
      `${type} precedes response.created`,
    );
    started = true;
    if (type === 'error' || type === 'response.failed') {
      const message = text(from['message']) || text(fields(from['error'])['message']);
      const inner = text(fields(fields(from['response'])['error'])['message']);
      heard.error = message || inner || 'an error without a message';
    } else if (type === 'response.completed' || type === 'response.incomplete') {
      last = readWhole(from['response']);
    } else {
      heard = grown(heard, type, text(from['delta']));
    }
  }
  if (last === undefined) return heard;
  // The deltas and the whole response at the end say the same.
  for (const member of ['text', 'refusal'] as const) {
    demand(heard[member] === last[member], `the deltas of the ${member} are not that of ${last.stopText}`);
  }
  return { ...last, error: heard.error, reasoning: heard.reasoning || last.reasoning };
}

function grown(heard: Heard, type: string, delta: string): Heard {
  if (type === 'response.output_text.delta') return { ...heard, text: heard.text + delta };
  if (type === 'response.refusal.delta') return { ...heard, refusal: heard.refusal + delta };
  const reasons = type === 'response.reasoning_summary_text.delta' || type === 'response.reasoning_text.delta';
  return reasons ? { ...heard, reasoning: heard.reasoning + delta } : heard;
}

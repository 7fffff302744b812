/** The three formats of conversations: the body of a request, and what the events of its answer add. */
import type { Answer, FormatName, Picture, Prompt, Route, Settings, ToolCall, Turn } from './conversation.ts';

type Json = Record<string, unknown>;

interface Format {
  path: string;
  /** Of the SDK. */
  sdk: 'openai' | 'anthropic';
  /** Whether answers can have images. */
  hasImages: boolean;
  /** @param makesImages whether the model can answer with images */
  body(model: string, turns: readonly Turn[], prompt: Prompt, settings: Settings, makesImages: boolean): Json;
  /** The answer after an event; the same object if it adds nothing to show. */
  add(answer: Answer, event: Json): Answer;
}

const DEFAULT_MAX_TOKENS = 1_024;
const MODALITIES = ['image', 'text'];

interface Tool {
  name: string;
  description?: string;
  parameters?: unknown;
}

/** @throws Error with what is wrong with them */
function readTools(text: string): Tool[] {
  if (text.trim() === '') return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`Tools are not valid JSON: ${(error as Error).message}`);
  }
  if (!Array.isArray(value)) throw new Error('Tools must be a JSON array.');
  return value.map((each: unknown, at) => {
    const tool = ((each as Json | null)?.['function'] ?? each) as Json | null;
    if (typeof tool?.['name'] !== 'string') throw new Error(`Tool ${at + 1} has no name.`);
    return tool as unknown as Tool;
  });
}

function numbers({ temperature, maxTokens }: Settings, limit: string): Json {
  return {
    ...(temperature !== '' && { temperature: Number(temperature) }),
    ...(maxTokens !== '' && { [limit]: Number(maxTokens) }),
  };
}

const chat: Format = {
  path: '/chat/completions',
  sdk: 'openai',
  hasImages: true,
  body(model, turns, prompt, settings, makesImages) {
    const tools = readTools(settings.tools);
    return {
      model,
      messages: [
        ...(settings.system === '' ? [] : [{ role: 'system', content: settings.system }]),
        ...turns.flatMap((turn) => [...chatPrompt(turn.prompt), chatAnswer(turn.answer)]),
        ...chatPrompt(prompt),
      ],
      ...numbers(settings, 'max_tokens'),
      ...(tools.length > 0 && { tools: tools.map((each) => ({ type: 'function', function: each })) }),
      ...(makesImages && { modalities: MODALITIES }),
      stream: true,
    };
  },
  add(answer, event) {
    const [choice] = (event['choices'] ?? []) as { delta?: Json }[];
    const delta = choice?.delta ?? {};
    return {
      ...answer,
      text: answer.text + textOf(delta['content']) + textOf(delta['refusal']),
      reasoning: answer.reasoning + textOf(delta['reasoning']),
      calls: ((delta['tool_calls'] ?? []) as Json[]).reduce(addChatCall, answer.calls as ToolCall[]),
      images: [
        ...answer.images,
        ...((delta['images'] ?? []) as { image_url?: { url?: string } }[]).flatMap(({ image_url }) =>
          image_url?.url === undefined ? [] : [{ url: image_url.url }],
        ),
      ],
    };
  },
};

function chatPrompt({ text, images, results }: Prompt): Json[] {
  const tools = results.map((result) => ({ role: 'tool', tool_call_id: result.id, content: result.text }));
  if (text === '' && images.length === 0) return tools;
  const pictures = images.map((url) => ({ type: 'image_url', image_url: { url } }));
  const content = images.length === 0 ? text : [{ type: 'text', text }, ...pictures];
  return [...tools, { role: 'user', content }];
}

function chatAnswer({ text, calls, images }: Answer): Json {
  const made = calls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function',
    function: { name, arguments: given },
  }));
  return {
    role: 'assistant',
    content: text,
    ...(calls.length > 0 && { tool_calls: made }),
    ...(images.length > 0 && { images: images.map(({ url }) => ({ type: 'image_url', image_url: { url } })) }),
  };
}

function addChatCall(calls: ToolCall[], part: Json): ToolCall[] {
  const at = Number(part['index'] ?? 0);
  const { name, arguments: given } = (part['function'] ?? {}) as { name?: string; arguments?: string };
  const known = calls[at] ?? { id: '', name: '', arguments: '' };
  const next = [...calls];
  next[at] = {
    id: textOf(part['id']) || known.id,
    name: known.name + textOf(name),
    arguments: known.arguments + textOf(given),
  };
  return next;
}

const messages: Format = {
  path: '/messages',
  sdk: 'anthropic',
  hasImages: false,
  body(model, turns, prompt, settings) {
    const tools = readTools(settings.tools);
    return {
      model,
      max_tokens: DEFAULT_MAX_TOKENS,
      ...(settings.system !== '' && { system: settings.system }),
      messages: [
        ...turns.flatMap((turn) => [messagesPrompt(turn.prompt), messagesAnswer(turn.answer)]),
        messagesPrompt(prompt),
      ],
      ...numbers(settings, 'max_tokens'),
      ...(tools.length > 0 && {
        tools: tools.map(({ name, description, parameters }) => ({
          ...{ name, description },
          input_schema: parameters ?? { type: 'object' },
        })),
      }),
      stream: true,
    };
  },
  add(answer, event) {
    if (event['type'] === 'content_block_start') {
      const block = (event['content_block'] ?? {}) as Json;
      if (block['type'] !== 'tool_use') return answer;
      const call = { id: textOf(block['id']), name: textOf(block['name']), arguments: '' };
      return { ...answer, calls: [...answer.calls, call] };
    }
    if (event['type'] !== 'content_block_delta') return answer;
    const delta = (event['delta'] ?? {}) as Json;
    return {
      ...answer,
      text: answer.text + textOf(delta['text']),
      reasoning: answer.reasoning + textOf(delta['thinking']),
      calls: addToLast(answer.calls, textOf(delta['partial_json'])),
    };
  },
};

function messagesPrompt({ text, images, results }: Prompt): Json {
  const content = [
    ...results.map((result) => ({ type: 'tool_result', tool_use_id: result.id, content: result.text })),
    ...images.map((url) => {
      const [, type = '', data = ''] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? [];
      return { type: 'image', source: { type: 'base64', media_type: type, data } };
    }),
    ...(text === '' ? [] : [{ type: 'text', text }]),
  ];
  return { role: 'user', content };
}

function messagesAnswer({ text, calls }: Answer): Json {
  const made = calls.map(({ id, name, arguments: given }) => ({ type: 'tool_use', id, name, input: parsed(given) }));
  return { role: 'assistant', content: [...(text === '' ? [] : [{ type: 'text', text }]), ...made] };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function addToLast(calls: readonly ToolCall[], text: string): readonly ToolCall[] {
  const last = calls.at(-1);
  return text === '' || last === undefined
    ? calls
    : [...calls.slice(0, -1), { ...last, arguments: last.arguments + text }];
}

const responses: Format = {
  path: '/responses',
  sdk: 'openai',
  hasImages: true,
  body(model, turns, prompt, settings, makesImages) {
    const tools = readTools(settings.tools);
    return {
      model,
      ...(settings.system !== '' && { instructions: settings.system }),
      input: [
        ...turns.flatMap((turn) => [...responsesPrompt(turn.prompt), ...responsesAnswer(turn.answer)]),
        ...responsesPrompt(prompt),
      ],
      ...numbers(settings, 'max_output_tokens'),
      ...(tools.length > 0 && { tools: tools.map((each) => ({ type: 'function', ...each })) }),
      ...(makesImages && { modalities: MODALITIES }),
      stream: true,
    };
  },
  add(answer, event) {
    const delta = textOf(event['delta']);
    switch (event['type']) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        return { ...answer, text: answer.text + delta };
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        return { ...answer, reasoning: answer.reasoning + delta };
      case 'response.function_call_arguments.delta':
        return { ...answer, calls: addToLast(answer.calls, delta) };
      case 'response.output_item.added': {
        const item = (event['item'] ?? {}) as Json;
        if (item['type'] !== 'function_call') return answer;
        const call = { id: textOf(item['call_id']), name: textOf(item['name']), arguments: '' };
        return { ...answer, calls: [...answer.calls, call] };
      }
      case 'response.output_item.done': {
        const picture = pictureOf((event['item'] ?? {}) as Json);
        return picture === undefined ? answer : { ...answer, images: [...answer.images, picture] };
      }
      default:
        return answer;
    }
  },
};

function pictureOf({ id, type, result, output_format }: Json): Picture | undefined {
  if (type !== 'image_generation_call' || typeof result !== 'string') return undefined;
  const url = /^[a-z]+:/.test(result) ? result : `data:image/${textOf(output_format) || 'png'};base64,${result}`;
  return { url, id: textOf(id) };
}

function responsesPrompt({ text, images, results }: Prompt): Json[] {
  const outputs = results.map((result) => ({ type: 'function_call_output', call_id: result.id, output: result.text }));
  if (text === '' && images.length === 0) return outputs;
  const pictures = images.map((url) => ({ type: 'input_image', image_url: url, detail: 'auto' }));
  return [...outputs, { role: 'user', content: [{ type: 'input_text', text }, ...pictures] }];
}

function responsesAnswer({ text, calls, images }: Answer): Json[] {
  const made = calls.map(({ id, name, arguments: given }) => ({
    type: 'function_call',
    call_id: id,
    name,
    arguments: given,
  }));
  const pictures = images.map(({ url, id = '' }) => ({
    ...{ type: 'image_generation_call', id, status: 'completed' },
    result: url.replace(/^data:[^,]*,/, ''),
  }));
  return [...(text === '' ? [] : [{ role: 'assistant', content: text }]), ...pictures, ...made];
}

export const FORMATS: Readonly<Record<FormatName, Format>> = { chat, messages, responses };

/** The message of an event that reports a failure in the middle of a stream. */
export function failureOf(event: Json): string | undefined {
  const response = event['response'] as Json | undefined;
  const error = (event['error'] ?? response?.['error'] ?? (event['type'] === 'error' ? event : undefined)) as
    | Json
    | undefined;
  if (error == null) return undefined;
  return typeof error['message'] === 'string' ? error['message'] : 'The stream ended with an error.';
}

/** The routing metadata, under whatever name the gateway gives it. */
export function routeOf(event: Json): Route | undefined {
  const places = [event, event['response'] as Json | undefined, event['message'] as Json | undefined];
  for (const place of places) {
    for (const [name, value] of Object.entries(place ?? {})) {
      if (/^\w+_metadata$/.test(name) && typeof value === 'object' && value !== null && 'summary' in value)
        return value as Route;
    }
  }
  return undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

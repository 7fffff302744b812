/** The request members that are settings, by format, and their translation. All other members belong to one request. */
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../formats/conversation/fields.ts';
import type { FormatId } from '../formats/conversation/registry.ts';

/** The same in every format. The last two exist in presets only. */
export const COMMON_MEMBERS = [
  'model',
  'models',
  'provider',
  'route',
  'plugins',
  'temperature',
  'top_p',
  'top_k',
  'service_tier',
  'cache_control',
  'deferred_tools',
  'stop_server_tools_when',
  'max_tool_calls',
  'cache_enabled',
  'cache_ttl_seconds',
] as const;

const PENALTIES = ['frequency_penalty', 'presence_penalty'];
const TOOLS = ['tools', 'tool_choice'];
const BOTH_OPENAI = ['parallel_tool_calls', 'reasoning', 'modalities', 'image_config', 'top_logprobs', ...PENALTIES];

/** Besides the common ones, by the id of a served format. */
export const OWN_MEMBERS: Readonly<Partial<Record<FormatId, readonly string[]>>> = {
  chat: [
    ...TOOLS,
    ...BOTH_OPENAI,
    'max_tokens',
    'max_completion_tokens',
    'stop',
    'seed',
    'top_a',
    'min_p',
    'repetition_penalty',
    'logit_bias',
    'logprobs',
    'response_format',
    'reasoning_effort',
    'include_reasoning',
    'verbosity',
    'web_search_options',
  ],
  messages: [
    ...TOOLS,
    'max_tokens',
    'fallbacks',
    'stop_sequences',
    'thinking',
    'output_config',
    'speed',
    'context_management',
  ],
  responses: [...TOOLS, ...BOTH_OPENAI, 'max_output_tokens', 'text', 'include', 'truncation'],
};

/** Groups of members: a request that has one of a group overrides the whole group. */
export const ALTERNATIVES: readonly (readonly string[])[] = [
  ['max_tokens', 'max_completion_tokens'],
  ['reasoning', 'reasoning_effort', 'include_reasoning'],
  ['models', 'fallbacks'],
  // The first spelling is that of clients with their own.
  ['generation_config', 'generationConfig'],
  ['tool_config', 'toolConfig'],
  ['service_tier', 'serviceTier'],
];

/** Members whose settings a request overrides one by one. */
export const MERGED: ReadonlySet<string> = new Set(['generationConfig']);

/** Settings of the output in a member of `MERGED`; they belong together like the alternatives above. */
export const OUTPUT_SETTINGS = ['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema'];

/** Translates the settings of one format into another. Settings that the other format lacks are left out. */
export function translated(config: Fields, from: FormatId, to: FormatId): Fields {
  if (from === to) return config;
  const chat = TO_CHAT[from]?.(config) ?? {};
  const own = FROM_CHAT[to]?.({ ...pick(config, COMMON_MEMBERS), ...chat }) ?? {};
  return defined({ ...pick(config, COMMON_MEMBERS), ...pick(chat, COMMON_MEMBERS), ...own });
}

type Translate = (config: Fields) => Fields;

const TO_CHAT: Readonly<Partial<Record<FormatId, Translate>>> = {
  chat: (config) => config,
  messages: (config) => {
    const { effort, format } = fieldsOf(config['output_config']);
    const { type, budget_tokens: budget } = fieldsOf(config['thinking']);
    const fallbacks = listOf(config['fallbacks']).map((each) => fieldsOf(each)['model']);
    const choice = fieldsOf(config['tool_choice']);
    return defined({
      max_tokens: config['max_tokens'],
      stop: config['stop_sequences'],
      models: fallbacks.length > 0 ? fallbacks : undefined,
      tools: mapped(config['tools'], functionOfMessages),
      tool_choice: CHOICES.get(textOf(choice['type'])) ?? namedChoice(choice['type'] === 'tool' ? choice['name'] : ''),
      parallel_tool_calls: choice['disable_parallel_tool_use'] === true ? false : undefined,
      reasoning:
        type === 'disabled'
          ? { enabled: false }
          : type === 'enabled'
            ? { max_tokens: budget }
            : effort !== undefined
              ? { effort }
              : type === 'adaptive'
                ? { enabled: true }
                : undefined,
      response_format: isFields(format)
        ? { type: 'json_schema', json_schema: { name: 'answer', schema: format['schema'] } }
        : undefined,
    });
  },
  responses: (config) => {
    const { format, verbosity } = fieldsOf(config['text']);
    const { type, name, ...schema } = fieldsOf(format);
    const choice = config['tool_choice'];
    return defined({
      ...pick(config, BOTH_OPENAI),
      max_tokens: config['max_output_tokens'],
      verbosity,
      tools: mapped(config['tools'], functionOfResponses),
      tool_choice: isFields(choice) && choice['type'] === 'function' ? namedChoice(choice['name']) : choice,
      response_format: type === 'json_schema' ? { type, json_schema: { name, ...schema } } : format,
    });
  },
};

const FROM_CHAT: Readonly<Partial<Record<FormatId, Translate>>> = {
  chat: (config) => config,
  messages: (config) => {
    const { enabled, max_tokens: budget } = fieldsOf(config['reasoning']);
    const effort = fieldsOf(config['reasoning'])['effort'] ?? config['reasoning_effort'];
    const isOff = enabled === false || effort === 'none';
    const { type, json_schema: output } = fieldsOf(config['response_format']);
    const { stop, tool_choice: choice } = config;
    return {
      max_tokens: config['max_completion_tokens'] ?? config['max_tokens'],
      stop_sequences: typeof stop === 'string' ? [stop] : stop,
      tools: mapped(config['tools'], toolOfMessages),
      tool_choice: messagesChoice(choice, config['parallel_tool_calls'] === false),
      thinking: isOff
        ? { type: 'disabled' }
        : typeof budget === 'number'
          ? { type: 'enabled', budget_tokens: budget }
          : enabled === true || typeof effort === 'string'
            ? { type: 'adaptive' }
            : undefined,
      output_config: nonEmpty({
        effort: isOff ? undefined : effort === 'minimal' ? 'low' : effort,
        format: type === 'json_schema' ? { type, schema: fieldsOf(output)['schema'] ?? {} } : undefined,
      }),
    };
  },
  gemini: (config) => {
    const { type, json_schema: output } = fieldsOf(config['response_format']);
    const { stop, tool_choice: choice } = config;
    const isJson = type === 'json_schema' || type === 'json_object';
    return {
      // Settings have their place in `generationConfig`; the other two have none.
      ...{ temperature: undefined, top_p: undefined, top_k: undefined },
      ...{ service_tier: undefined, cache_control: undefined, deferred_tools: undefined },
      serviceTier: config['service_tier'],
      tools: mapped(config['tools'], toolOfGemini),
      toolConfig: geminiChoice(choice),
      generationConfig: nonEmpty({
        temperature: config['temperature'],
        topP: config['top_p'],
        topK: config['top_k'],
        maxOutputTokens: config['max_completion_tokens'] ?? config['max_tokens'],
        stopSequences: typeof stop === 'string' ? [stop] : stop,
        seed: config['seed'],
        presencePenalty: config['presence_penalty'],
        frequencyPenalty: config['frequency_penalty'],
        responseLogprobs: config['logprobs'],
        logprobs: config['top_logprobs'],
        responseModalities: config['modalities'],
        responseMimeType: isJson ? 'application/json' : undefined,
        responseJsonSchema: type === 'json_schema' ? (fieldsOf(output)['schema'] ?? {}) : undefined,
        thinkingConfig: geminiThinking(config),
      }),
    };
  },
  responses: (config) => {
    const { type, json_schema: schema } = fieldsOf(config['response_format']);
    const { tool_choice: choice, reasoning_effort: effort } = config;
    return {
      ...pick(config, BOTH_OPENAI),
      reasoning: config['reasoning'] ?? nonEmpty({ effort }),
      max_output_tokens: config['max_completion_tokens'] ?? config['max_tokens'],
      tools: mapped(config['tools'], toolOfResponses),
      tool_choice: isFields(choice) ? { type: choice['type'], ...fieldsOf(choice['function']) } : choice,
      text: nonEmpty({
        verbosity: config['verbosity'],
        format: type === 'json_schema' ? { type, ...fieldsOf(schema) } : type === 'json_object' ? { type } : undefined,
      }),
    };
  },
};

const CHOICES = new Map([
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
]);
const CHOICE_TYPES = new Map([...CHOICES].map(([type, choice]) => [choice, type]));

function namedChoice(name: unknown): Fields | undefined {
  return textOf(name) === '' ? undefined : { type: 'function', function: { name } };
}

function messagesChoice(choice: unknown, isSerial: boolean): Fields | undefined {
  const name = fieldsOf(fieldsOf(choice)['function'])['name'];
  const type = name === undefined ? CHOICE_TYPES.get(textOf(choice)) : 'tool';
  const serial = isSerial && type !== 'none' && { disable_parallel_tool_use: true };
  if (type === undefined) return serial ? { type: 'auto', ...serial } : undefined;
  return { type, ...(name !== undefined && { name }), ...serial };
}

function geminiChoice(choice: unknown): Fields | undefined {
  const name = fieldsOf(fieldsOf(choice)['function'])['name'];
  const mode = name === undefined ? GEMINI_MODES.get(textOf(choice)) : 'ANY';
  if (mode === undefined) return undefined;
  return { functionCallingConfig: { mode, ...(name !== undefined && { allowedFunctionNames: [name] }) } };
}

const GEMINI_MODES = new Map([
  ['auto', 'AUTO'],
  ['required', 'ANY'],
  ['none', 'NONE'],
]);

const GEMINI_LEVELS = new Map([
  ['minimal', 'MINIMAL'],
  ['low', 'LOW'],
  ['medium', 'MEDIUM'],
]);

function geminiThinking(config: Fields): Fields | undefined {
  const { enabled, max_tokens: budget } = fieldsOf(config['reasoning']);
  const effort = fieldsOf(config['reasoning'])['effort'] ?? config['reasoning_effort'];
  if (enabled === false || effort === 'none') return { thinkingBudget: 0 };
  if (typeof budget === 'number') return { thinkingBudget: budget };
  if (typeof effort === 'string') return { thinkingLevel: GEMINI_LEVELS.get(effort) ?? 'HIGH' };
  return enabled === true ? { thinkingBudget: -1 } : undefined;
}

function toolOfGemini(tool: Fields): Fields {
  const { type, function: definition } = tool;
  if (type !== 'function') return tool;
  const { name, description, parameters } = fieldsOf(definition);
  return { functionDeclarations: [defined({ name, description, parametersJsonSchema: parameters })] };
}

/** Tools of other types are the same in all formats, or are refused by those that do not have them. */
function functionOfMessages(tool: Fields): Fields {
  const { type, name, description, input_schema: parameters, strict, ...rest } = tool;
  if ((type ?? 'custom') !== 'custom') return tool;
  return { type: 'function', function: defined({ name, description, parameters, strict }), ...rest };
}

function toolOfMessages(tool: Fields): Fields {
  const { type, function: definition, ...rest } = tool;
  if (type !== 'function') return tool;
  const { parameters: input_schema = { type: 'object' }, ...members } = fieldsOf(definition);
  return { ...members, input_schema, ...rest };
}

function functionOfResponses(tool: Fields): Fields {
  const { type, name, description, parameters, strict, ...rest } = tool;
  if (type !== 'function') return tool;
  return { type, function: defined({ name, description, parameters, strict: strict ?? undefined }), ...rest };
}

function toolOfResponses(tool: Fields): Fields {
  const { type, function: definition, ...rest } = tool;
  return type === 'function' ? { type, ...fieldsOf(definition), ...rest } : tool;
}

function mapped(tools: unknown, each: Translate): Fields[] | undefined {
  return Array.isArray(tools) ? tools.map((tool) => each(fieldsOf(tool))) : undefined;
}

function pick(config: Fields, names: readonly string[]): Fields {
  return defined(Object.fromEntries(names.map((name) => [name, config[name]])));
}

function defined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function nonEmpty(fields: Fields): Fields | undefined {
  const members = defined(fields);
  return Object.keys(members).length > 0 ? members : undefined;
}

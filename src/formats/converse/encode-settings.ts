/** Tools, sampling, thinking and the form of the output in a request of the converse form. */
import { stringifyJson } from '../../base/json.ts';
import type { Conversation, OutputFormat, Settings, Tool } from '../conversation/conversation.ts';
import { effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { dropKnobs, type Knob } from '../conversation/knobs.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import {
  argumentsSchema,
  encodeMaxTokens,
  encodeThinking,
  type Generation,
  generationOf,
  type Surroundings,
  samplingFor,
  structuredSchema,
} from '../messages/index.ts';
import type { CachePoints } from './cache-points.ts';

export interface ToolContext {
  points: CachePoints;
  /** Of a model of Anthropic's. */
  claude: Generation | undefined;
  losses: Losses;
}

/** `toolConfig`; undefined without tools. `calls`: the history holds calls, which the service refuses without tools. */
export function encodeTools(
  conversation: Conversation,
  calls: readonly string[],
  context: ToolContext,
): Fields | undefined {
  const { toolChoice } = conversation;
  // Calls are forbidden by declaring no tools.
  if (toolChoice?.mode === 'none') return undefined;
  const given = conversation.tools ?? [];
  // Those that only the history names are declared for reading.
  const tools: readonly Tool[] = given.length > 0 ? given : calls.map((name) => ({ type: 'function', name }));
  if (tools.length === 0) return undefined;
  const choice = given.length === 0 ? undefined : encodeToolChoice(conversation);
  return {
    tools: tools.flatMap((tool) => encodeTool(tool, context)),
    ...(choice !== undefined && { toolChoice: choice }),
  };
}

function encodeTool(tool: Tool, { points, claude, losses }: ToolContext): Fields[] {
  if (tool.type === 'opaque') {
    if (tool.origin === 'converse') return [fieldsOf(tool.value)];
    const kind = fieldsOf(tool.value)['type'];
    throw new Uncarried(`tools of type ${typeof kind === 'string' ? kind : tool.origin}`, 'only that form knows them');
  }
  const { schema, strict } =
    claude === undefined
      ? { schema: plainSchema(tool.parameters), strict: tool.strict === true }
      : argumentsSchema(tool, claude, losses);
  const spec: Fields = {
    name: tool.name,
    // The service refuses an empty one.
    ...(tool.description !== undefined && tool.description !== '' && { description: tool.description }),
    inputSchema: { json: schema },
    ...(strict && { strict: true }),
  };
  return [{ toolSpec: spec }, ...points.after(tool.cache, 'tools')];
}

function plainSchema(parameters: unknown): unknown {
  const schema = fieldsOf(parameters);
  if (schema['type'] !== undefined) return parameters;
  return { type: 'object', ...(Object.keys(schema).length === 0 ? { properties: {} } : schema) };
}

function encodeToolChoice({ toolChoice }: Conversation): Fields | undefined {
  switch (toolChoice?.mode) {
    case 'auto':
      return { auto: {} };
    case 'required':
      return { any: {} };
    case 'tool':
      return { tool: { name: toolChoice.name } };
    case 'opaque':
      throw new Uncarried('tool_choice', `the choice of the ${toolChoice.origin} form has no counterpart`);
    default:
      return undefined;
  }
}

export function encodeOutput(
  output: OutputFormat | undefined,
  claude: Generation | undefined,
  losses: Losses,
): Fields | undefined {
  if (output === undefined || output.type === 'text') return undefined;
  if (output.type !== 'schema') {
    throw new Uncarried('response_format', `the converse form has no output format ${output.type}`);
  }
  if (output.schema === undefined) throw new Uncarried('response_format', 'the converse form needs the schema');
  const schema = claude === undefined ? output.schema : structuredSchema(output.schema, 'response_format', losses);
  if (schema === undefined || claude?.schemas === false) {
    throw new Uncarried('response_format', 'the model takes no such schema for its answer');
  }
  const jsonSchema: Fields = {
    schema: stringifyJson(schema),
    ...(output.name !== undefined && { name: output.name }),
    ...(output.description !== undefined && { description: output.description }),
  };
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } };
}

export interface Inference {
  inferenceConfig: Fields;
  /** What stands in each vendor's own members. */
  additional: Fields;
}

/** `inferenceConfig`, and the members of the model's vendor for what the form itself has no name for. */
export function encodeInference(
  conversation: Conversation,
  target: EncodeTarget,
  context: Surroundings & { vendor: string | undefined },
  losses: Losses,
): Inference {
  const { reasoning } = conversation;
  const settings = samplingFor(generationOf(target.model), conversation.settings, losses);
  const claude = context.vendor === 'anthropic' || context.vendor === undefined;
  const thinks = reasoning !== undefined && claude;
  const maxTokens = thinks
    ? encodeMaxTokens(settings.maxOutputTokens, target, losses)
    : cappedTokens(settings.maxOutputTokens, target, losses);
  const additional = thinks
    ? claudeThinking(conversation, target, maxTokens!, context, losses)
    : otherThinking(conversation, target, context.vendor, maxTokens, losses);
  const fixed = fieldsOf(additional['thinking'])['type'];
  const free = fixed === undefined || fixed === 'disabled';
  const sampling = encodeSampling(settings, claude, free, losses);
  encodeTopK(settings.topK, context.vendor, free, additional, losses);
  dropKnobs(settings, UNKNOWN_KNOBS, 'converse', losses);
  return {
    inferenceConfig: { ...(maxTokens !== undefined && { maxTokens }), ...sampling },
    additional,
  };
}

/** The client's cap, or the endpoint's own, never above the gateway's; undefined where nobody names one. */
function cappedTokens(wanted: number | undefined, target: EncodeTarget, losses: Losses): number | undefined {
  if (wanted === undefined && target.maxOutputTokens === null) return target.capOutputTokens;
  return encodeMaxTokens(wanted, target, losses);
}

/** The members of Anthropic's own form, which the service passes on. */
function claudeThinking(
  conversation: Conversation,
  target: EncodeTarget,
  maxTokens: number,
  context: Surroundings,
  losses: Losses,
): Fields {
  const { thinking, config } = encodeThinking(conversation, target, maxTokens, context, losses);
  return {
    ...(thinking !== undefined && { thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
  };
}

/** An effort in the words of the vendors that know one. */
function otherThinking(
  { reasoning }: Conversation,
  target: EncodeTarget,
  vendor: string | undefined,
  maxTokens: number | undefined,
  losses: Losses,
): Fields {
  const effort = effortOf(reasoning, maxTokens ?? target.maxOutputTokens);
  if (effort === undefined) return {};
  const word =
    effort === 'none'
      ? 'none'
      : effort === 'minimal'
        ? 'low'
        : effort === 'medium' || effort === 'low'
          ? effort
          : 'high';
  if (vendor === 'openai' && word !== 'none') return { reasoning_effort: word };
  if (vendor === 'amazon' && /nova-2/.test(target.model)) {
    if (word === 'none') return { reasoningConfig: { type: 'disabled' } };
    // With the highest one the model takes neither a cap nor sampling.
    if (word === 'high') losses.drop('reasoning.effort', 'high leaves no cap on the output: medium is asked for');
    return { reasoningConfig: { type: 'enabled', maxReasoningEffort: word === 'high' ? 'medium' : word } };
  }
  if (word !== 'none') losses.drop('reasoning', 'the model cannot be told how much to think');
  return {};
}

function encodeSampling(settings: Settings, claude: boolean, free: boolean, losses: Losses): Fields {
  const config: Fields = {};
  if (settings.temperature !== undefined) {
    const temperature = Math.min(Math.max(settings.temperature, 0), 1);
    if (temperature !== settings.temperature) losses.drop('temperature', 'the provider takes 0 to 1: sent as 1');
    if (!free && temperature !== 1) losses.drop('temperature', 'the provider fixes it when it thinks');
    else config['temperature'] = temperature;
  }
  if (settings.topP !== undefined) {
    if (claude && !free && settings.topP < 0.95) losses.drop('top_p', 'the provider takes 0.95 to 1 when it thinks');
    else config['topP'] = settings.topP;
  }
  const stop = settings.stop?.filter((text) => text.trim() !== '');
  if (stop !== undefined && stop.length !== settings.stop?.length) {
    losses.drop('stop', 'the provider refuses stop texts of white space only');
  }
  if (stop !== undefined && stop.length > 0) config['stopSequences'] = stop;
  return config;
}

function encodeTopK(
  topK: number | undefined,
  vendor: string | undefined,
  free: boolean,
  additional: Fields,
  losses: Losses,
): void {
  if (topK === undefined) return;
  if (vendor === 'amazon') additional['inferenceConfig'] = { topK };
  else if (vendor === 'cohere') additional['k'] = topK;
  else if ((vendor === 'anthropic' && free) || vendor === 'mistral') additional['top_k'] = topK;
  else losses.drop('top_k', vendor === 'anthropic' ? 'the provider takes none when it thinks' : 'the model takes none');
}

const UNKNOWN_KNOBS: readonly Knob[] = [
  'topA',
  'minP',
  'frequencyPenalty',
  'presencePenalty',
  'repetitionPenalty',
  'seed',
  'logprobs',
  'topLogprobs',
  'logitBias',
  'verbosity',
  'prediction',
  'promptCacheKey',
];

/** The service's own tiers; `auto` leaves the choice to it. */
export function encodeTier(tier: string | undefined, losses: Losses): Fields {
  switch (tier) {
    case undefined:
    case 'auto':
      return {};
    case 'priority':
    case 'default':
    case 'flex':
    case 'reserved':
      return { serviceTier: { type: tier } };
    case 'standard_only':
      return { serviceTier: { type: 'default' } };
    default:
      losses.drop('service_tier', `the converse form has no tier ${tier}`);
      return {};
  }
}

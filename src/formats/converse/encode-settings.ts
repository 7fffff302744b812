/** Encodes tools, sampling, thinking and output format of a converse request. */
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

interface ToolContext {
  points: CachePoints;
  /** Set for Anthropic models. */
  claude: Generation | undefined;
  losses: Losses;
}

/**
 * `toolConfig`; undefined without tools. `calls` are the tools called in the history: the service rejects such a
 * history if no tools are declared.
 */
export function encodeTools(
  conversation: Conversation,
  calls: readonly string[],
  context: ToolContext,
): Fields | undefined {
  const { toolChoice } = conversation;
  // Declaring no tools forbids calls.
  if (toolChoice?.mode === 'none') return undefined;
  const given = conversation.tools ?? [];
  // Tools that appear only in the history are declared so that the service accepts it.
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
    throw new Uncarried(
      `tools of type ${typeof kind === 'string' ? kind : tool.origin}`,
      'only the format they came from has them',
    );
  }
  const { schema, strict } =
    claude === undefined
      ? { schema: plainSchema(tool.parameters), strict: tool.strict === true }
      : argumentsSchema(tool, claude, losses);
  const spec: Fields = {
    name: tool.name,
    // The service rejects an empty description.
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
      throw new Uncarried(
        'tool_choice',
        `the converse format cannot express a choice of the ${toolChoice.origin} format`,
      );
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
    throw new Uncarried('response_format', `the converse format has no output format ${output.type}`);
  }
  if (output.schema === undefined) throw new Uncarried('response_format', 'the converse format requires a schema');
  const schema = claude === undefined ? output.schema : structuredSchema(output.schema, 'response_format', losses);
  if (schema === undefined || claude?.schemas === false) {
    throw new Uncarried('response_format', 'the model does not support this output schema');
  }
  const jsonSchema: Fields = {
    schema: stringifyJson(schema),
    ...(output.name !== undefined && { name: output.name }),
    ...(output.description !== undefined && { description: output.description }),
  };
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } };
}

interface Inference {
  inferenceConfig: Fields;
  /** Vendor-specific members. */
  additional: Fields;
}

/** `inferenceConfig`, plus the vendor's own members for settings that the format cannot express. */
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

/** The client's cap, else the endpoint's, never above the gateway's; undefined if there is none. */
function cappedTokens(wanted: number | undefined, target: EncodeTarget, losses: Losses): number | undefined {
  if (wanted === undefined && target.maxOutputTokens === null) return target.capOutputTokens;
  return encodeMaxTokens(wanted, target, losses);
}

/** Members of Anthropic's Messages API, which the service passes on. */
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

/** The effort in the members of the vendors that support one. */
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
    // At the highest effort the model accepts neither an output cap nor sampling.
    if (word === 'high') losses.drop('reasoning.effort', 'high forbids an output cap; sent as medium');
    return { reasoningConfig: { type: 'enabled', maxReasoningEffort: word === 'high' ? 'medium' : word } };
  }
  if (word !== 'none') losses.drop('reasoning', 'the model has no reasoning effort');
  return {};
}

function encodeSampling(settings: Settings, claude: boolean, free: boolean, losses: Losses): Fields {
  const config: Fields = {};
  if (settings.temperature !== undefined) {
    const temperature = Math.min(Math.max(settings.temperature, 0), 1);
    if (temperature !== settings.temperature) losses.drop('temperature', 'the provider accepts 0 to 1; clamped');
    if (!free && temperature !== 1) losses.drop('temperature', 'it is fixed while reasoning is enabled');
    else config['temperature'] = temperature;
  }
  if (settings.topP !== undefined) {
    if (claude && !free && settings.topP < 0.95)
      losses.drop('top_p', 'the provider accepts 0.95 to 1 while reasoning is enabled');
    else config['topP'] = settings.topP;
  }
  const stop = settings.stop?.filter((text) => text.trim() !== '');
  if (stop !== undefined && stop.length !== settings.stop?.length) {
    losses.drop('stop', 'the provider rejects blank stop sequences');
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
  else
    losses.drop(
      'top_k',
      vendor === 'anthropic' ? 'not accepted while reasoning is enabled' : 'the model does not accept it',
    );
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

/** The service's own tiers; `auto` leaves the choice to the service. */
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
      losses.drop('service_tier', `the converse format has no tier ${tier}`);
      return {};
  }
}

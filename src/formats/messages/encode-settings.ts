/** Encodes thinking, tools and sampling of a request to an upstream of this format. */
import type { Conversation, Effort, FunctionTool, Settings, Tool } from '../conversation/conversation.ts';
import { budgetOf, DEFAULT_EFFORT, effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf, listOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { dropKnobs, type Knob } from '../conversation/knobs.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { checkUniqueNames } from '../conversation/unique-names.ts';
import type { CacheMarks } from './cache-marks.ts';
import { type Generation, generationOf } from './generation.ts';
import { objectSchema } from './object-schema.ts';
import { structuredSchema } from './structured-schema.ts';

/**
 * Every model of this format supports this many output tokens: the default when neither the client nor the catalog
 * gives a cap.
 */
export const SMALLEST_OUTPUT_LIMIT = 4096;
export const SMALLEST_BUDGET = 1024;

/** The body members that a cloud provider requires; `betas` are those that the client put in the body. */
export function hostedMembers(target: EncodeTarget, betas?: unknown): Fields {
  const { hosted } = target.dialect.messages ?? {};
  if (hosted === undefined) return {};
  const wanted = hosted.betasInBody ? [...new Set([...listOf(betas), ...(target.betas ?? [])])] : [];
  return { anthropic_version: hosted.version, ...(wanted.length > 0 && { anthropic_beta: wanted }) };
}

/** The required cap: the client's, limited by the endpoint's and the gateway's (envoyproxy/ai-gateway#893). */
export function encodeMaxTokens(wanted: number | undefined, target: EncodeTarget, losses: Losses): number {
  const limit = target.maxOutputTokens;
  let cap = wanted ?? limit ?? SMALLEST_OUTPUT_LIMIT;
  if (limit !== null && cap > limit) {
    losses.drop('max_tokens', `${cap} is more than the endpoint's ${limit}`);
    cap = limit;
  }
  return target.capOutputTokens === undefined ? cap : Math.min(cap, target.capOutputTokens);
}

export function encodeTools(
  tools: readonly Tool[] | undefined,
  marks: CacheMarks,
  generation: Generation,
  losses: Losses,
): unknown[] | undefined {
  if (tools === undefined || tools.length === 0) return undefined;
  checkUniqueNames(tools);
  return tools.map((tool) => {
    if (tool.type === 'opaque') {
      if (tool.origin === 'messages') return marks.native(tool.value);
      const kind = fieldsOf(tool.value)['type'];
      throw new Uncarried(
        `tools of type ${typeof kind === 'string' ? kind : tool.origin}`,
        'only its own format supports them',
      );
    }
    const { schema, strict } = argumentsSchema(tool, generation, losses);
    return {
      name: tool.name,
      ...(tool.description !== undefined && { description: tool.description }),
      input_schema: schema,
      ...(strict && { strict: true }),
      ...tool.extras?.messages,
      ...marks.member(tool.cache),
    };
  });
}

/** The schema of a tool's arguments, and whether the model must follow it. Default: an object without members. */
export function argumentsSchema(
  tool: FunctionTool,
  generation: Generation,
  losses: Losses,
): { schema: unknown; strict: boolean } {
  const where = `tools[${tool.name}]`;
  const schema = objectSchema(tool.parameters, where, losses);
  if (tool.strict !== true) return { schema, strict: false };
  const none = { type: 'object', properties: {}, additionalProperties: false };
  const held = generation.schemas
    ? structuredSchema(tool.parameters === undefined ? none : schema, where, losses)
    : undefined;
  if (held !== undefined) return { schema: held, strict: true };
  losses.drop(`${where}.strict`, 'the provider cannot enforce this schema');
  return { schema, strict: false };
}

/** Encodes the tool choice; omitted when there are no tools (agentscope-ai/agentscope-java#2221). */
export function encodeToolChoice(conversation: Conversation): Fields | undefined {
  if (conversation.tools === undefined || conversation.tools.length === 0) return undefined;
  const { toolChoice, settings } = conversation;
  const parallel = settings.parallelToolCalls;
  const single = parallel === undefined ? {} : { disable_parallel_tool_use: !parallel };
  switch (toolChoice?.mode) {
    case undefined:
      return parallel === false ? { type: 'auto', ...single } : undefined;
    case 'auto':
      return { type: 'auto', ...single };
    case 'none':
      return { type: 'none' };
    case 'required':
      return { type: 'any', ...single };
    case 'tool':
      return { type: 'tool', name: toolChoice.name, ...single };
    case 'opaque':
      if (toolChoice.origin === 'messages') return fieldsOf(toolChoice.value);
      throw new Uncarried(
        'tool_choice',
        `the messages format does not support a choice of the ${toolChoice.origin} format`,
      );
  }
}

/** Conditions under which this vendor's models refuse to think. */
export interface Surroundings {
  /** The tool choice forces a call. */
  forced: boolean;
  /** The answer continues an assistant message. */
  prefilled: boolean;
  /** The answer follows a call by another model. */
  unsignedCall: boolean;
}

/** `thinking` and `output_config`. */
export function encodeThinking(
  conversation: Conversation,
  target: EncodeTarget,
  maxTokens: number,
  context: Surroundings,
  losses: Losses,
): { thinking?: Fields; config: Fields } {
  const config: Fields = { ...fieldsOf(conversation.extras?.messages?.['output_config']) };
  const { reasoning } = conversation;
  if (reasoning === undefined) return { config };
  const { effort: nativeEffort, ...native } = reasoning.extras?.messages ?? {};
  if (nativeEffort !== undefined) return { config: { ...config, effort: nativeEffort } };
  const { thinking: kind, xhigh } = generationOf(target.model);
  const asked = effortOf(reasoning, maxTokens);
  if (asked === 'none' && kind === 'always') {
    losses.drop('reasoning', 'the model cannot stop thinking: its effort is lowered and its thinking hidden');
    return { thinking: { type: 'adaptive', display: 'omitted', ...native }, config: { ...config, effort: 'low' } };
  }
  if (asked === 'none') return { thinking: { type: 'disabled', ...native }, config };
  // A budget-only model also gets a budget where the client leaves it to the model.
  const effort = kind === 'budget' && reasoning.adaptive ? (asked ?? DEFAULT_EFFORT) : asked;
  const takesEffort = kind === 'adaptive' || kind === 'always';
  const wanted = takesEffort || target.dialect.messages?.thinking === 'adaptive';
  const adaptive = kind !== 'budget' && (reasoning.adaptive === true || (wanted && effort !== undefined));
  // Models without budgets hide their thinking unless asked to show it.
  const shown = takesEffort ? { display: 'summarized' } : {};
  const display = reasoning.exclude ? { display: 'omitted' } : shown;
  const budget = adaptive ? undefined : budgetOf({ ...reasoning, ...(effort && { effort }) }, maxTokens);
  if (!adaptive && (budget === undefined || budget === null)) return { config };
  const obstacle = obstacleTo(maxTokens, adaptive, context);
  if (obstacle !== undefined) {
    losses.drop('reasoning', obstacle);
    return { config };
  }
  if (adaptive) {
    return {
      thinking: { type: 'adaptive', ...display, ...native },
      config: effort === undefined ? config : { ...config, effort: wordFor(effort, xhigh) },
    };
  }
  const tokens = Math.min(Math.max(budget ?? 0, SMALLEST_BUDGET), maxTokens - 1);
  return { thinking: { type: 'enabled', budget_tokens: tokens, ...display, ...native }, config };
}

/** Why the vendor would reject thinking here; the request is then sent without it. */
function obstacleTo(maxTokens: number, adaptive: boolean, context: Surroundings): string | undefined {
  if (context.forced) return 'the provider does not think when a tool call is forced';
  if (context.prefilled) return 'the provider does not think when it continues an assistant message';
  if (context.unsignedCall) return 'the provider does not think after a tool call of another model';
  if (!adaptive && maxTokens <= SMALLEST_BUDGET)
    return `the smallest thinking budget does not fit into ${maxTokens} output tokens`;
  return undefined;
}

function wordFor(effort: Effort, xhigh: boolean): Effort {
  if (effort === 'xhigh' && !xhigh) return 'high';
  return effort === 'minimal' ? 'low' : effort;
}

/** Encodes sampling and other tuning parameters; unsupported ones are reported. */
export function encodeSampling(given: Settings, thinks: boolean, generation: Generation, losses: Losses): Fields {
  const settings = samplingFor(generation, given, losses);
  const body: Fields = {};
  if (settings.temperature !== undefined) {
    const temperature = Math.min(Math.max(settings.temperature, 0), 1);
    if (temperature !== settings.temperature) losses.drop('temperature', 'the provider accepts 0 to 1: sent as 1');
    if (thinks && temperature !== 1) losses.drop('temperature', 'the provider does not accept it with thinking');
    else body['temperature'] = temperature;
  }
  if (settings.topP !== undefined) {
    if (thinks && settings.topP < 0.95) losses.drop('top_p', 'the provider accepts 0.95 to 1 with thinking');
    else body['top_p'] = settings.topP;
  }
  if (settings.topK !== undefined) {
    if (thinks) losses.drop('top_k', 'the provider does not accept it with thinking');
    else body['top_k'] = settings.topK;
  }
  const stop = settings.stop?.filter((text) => text.trim() !== '');
  if (stop !== undefined && stop.length !== settings.stop?.length) {
    losses.drop('stop', 'the provider does not accept stop sequences of white space only');
  }
  if (stop !== undefined && stop.length > 0) body['stop_sequences'] = stop;
  const tier = tierOf(settings.serviceTier, losses);
  if (tier !== undefined) body['service_tier'] = tier;
  dropKnobs(settings, UNKNOWN_KNOBS, 'messages', losses);
  return body;
}

/** Removes and reports the sampling settings that a model of this generation rejects. */
export function samplingFor({ sampling }: Generation, settings: Settings, losses: Losses): Settings {
  if (sampling === 'free') return settings;
  const { temperature, topP, topK, ...rest } = settings;
  if (sampling === 'none') {
    for (const [name, value] of Object.entries({ temperature, top_p: topP, top_k: topK })) {
      if (value !== undefined) losses.drop(name, 'the model has no sampling settings');
    }
    return rest;
  }
  if (temperature === undefined || topP === undefined) return settings;
  losses.drop('top_p', 'the model accepts either top_p or temperature');
  return { ...rest, temperature, ...(topK !== undefined && { topK }) };
}

/**
 * The text that the model should continue. Trailing white space is removed, because the vendor rejects it. Throws
 * `Uncarried` if this generation cannot continue an assistant message.
 */
export function begunText(text: string, { prefill }: Generation, losses: Losses): string {
  if (!prefill) {
    throw new Uncarried(
      'messages',
      'this model cannot continue an assistant message: the last message must be a user message',
    );
  }
  const begun = text.trimEnd();
  if (begun !== text)
    losses.drop('messages', 'the provider does not accept white space at the end of the last message');
  return begun;
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

function tierOf(tier: string | undefined, losses: Losses): string | undefined {
  switch (tier) {
    case undefined:
      return undefined;
    case 'auto':
    case 'standard_only':
      return tier;
    case 'default':
      return 'standard_only';
    case 'priority':
      return 'auto';
    default:
      losses.drop('service_tier', `the messages format has no tier ${tier}`);
      return undefined;
  }
}

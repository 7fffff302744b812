/** Thinking, tools and sampling of a request to an upstream of this form. */
import type { Conversation, Effort, FunctionTool, Settings, Tool } from '../conversation/conversation.ts';
import { budgetOf, DEFAULT_EFFORT, effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf, listOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { dropKnobs, type Knob } from '../conversation/knobs.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import type { CacheMarks } from './cache-marks.ts';
import { type Generation, generationOf } from './generation.ts';
import { objectSchema } from './object-schema.ts';
import { structuredSchema } from './structured-schema.ts';

/** What every model of this form can write: the last resort where neither the client nor the catalog names a cap. */
export const SMALLEST_OUTPUT_LIMIT = 4096;
export const SMALLEST_BUDGET = 1024;

/** What a cloud provider wants in the body; `betas` are those that the client put there itself. */
export function hostedMembers(target: EncodeTarget, betas?: unknown): Fields {
  const { hosted } = target.dialect.messages ?? {};
  if (hosted === undefined) return {};
  const wanted = hosted.betasInBody ? [...new Set([...listOf(betas), ...(target.betas ?? [])])] : [];
  return { anthropic_version: hosted.version, ...(wanted.length > 0 && { anthropic_beta: wanted }) };
}

/** The required cap: the client's, never above the endpoint's own or the gateway's (bug 46). */
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
  return tools.map((tool) => {
    if (tool.type === 'opaque') {
      if (tool.origin === 'messages') return marks.native(tool.value);
      const kind = fieldsOf(tool.value)['type'];
      throw new Uncarried(
        `tools of type ${typeof kind === 'string' ? kind : tool.origin}`,
        'only that form knows them',
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

/** The schema of a tool's arguments, and whether the model is held to it. A function without parameters takes none. */
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
  losses.drop(`${where}.strict`, 'the provider cannot hold the model to this schema');
  return { schema, strict: false };
}

/** The table of bug 40. Without tools there is nothing to choose from. */
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
      throw new Uncarried('tool_choice', `the choice of the ${toolChoice.origin} form has no counterpart`);
  }
}

/** What stands around the answer and keeps a model of this vendor from thinking. */
export interface Surroundings {
  /** The tool choice forces a call. */
  forced: boolean;
  /** The answer goes on in a message of the assistant. */
  prefilled: boolean;
  /** It goes on behind a call that is not its own. */
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
    losses.drop('reasoning', 'the model cannot be kept from thinking: it is asked for little, and shows none of it');
    return { thinking: { type: 'adaptive', display: 'omitted', ...native }, config: { ...config, effort: 'low' } };
  }
  if (asked === 'none') return { thinking: { type: 'disabled', ...native }, config };
  // A model that knows budgets only is told one also where the client leaves it to the model.
  const effort = kind === 'budget' && reasoning.adaptive ? (asked ?? DEFAULT_EFFORT) : asked;
  const takesEffort = kind === 'adaptive' || kind === 'always';
  const wanted = takesEffort || target.dialect.messages?.thinking === 'adaptive';
  const adaptive = kind !== 'budget' && (reasoning.adaptive === true || (wanted && effort !== undefined));
  // Models that take no budget show nothing of their thinking unless they are asked to.
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

/** Why the vendor would refuse to think here; the request goes out without thinking instead. */
function obstacleTo(maxTokens: number, adaptive: boolean, context: Surroundings): string | undefined {
  if (context.forced) return 'the provider does not think when a tool call is forced';
  if (context.prefilled) return 'the provider does not think in a message that is begun';
  if (context.unsignedCall) return 'the provider continues a tool call only behind its own thinking';
  if (!adaptive && maxTokens <= SMALLEST_BUDGET)
    return `a thinking budget does not fit below ${maxTokens} output tokens`;
  return undefined;
}

function wordFor(effort: Effort, xhigh: boolean): Effort {
  if (effort === 'xhigh' && !xhigh) return 'high';
  return effort === 'minimal' ? 'low' : effort;
}

/** Sampling and the other knobs; those without a place are reported. */
export function encodeSampling(given: Settings, thinks: boolean, generation: Generation, losses: Losses): Fields {
  const settings = samplingFor(generation, given, losses);
  const body: Fields = {};
  if (settings.temperature !== undefined) {
    const temperature = Math.min(Math.max(settings.temperature, 0), 1);
    if (temperature !== settings.temperature) losses.drop('temperature', 'the provider takes 0 to 1: sent as 1');
    if (thinks && temperature !== 1) losses.drop('temperature', 'the provider fixes it when it thinks');
    else body['temperature'] = temperature;
  }
  if (settings.topP !== undefined) {
    if (thinks && settings.topP < 0.95) losses.drop('top_p', 'the provider takes 0.95 to 1 when it thinks');
    else body['top_p'] = settings.topP;
  }
  if (settings.topK !== undefined) {
    if (thinks) losses.drop('top_k', 'the provider takes none when it thinks');
    else body['top_k'] = settings.topK;
  }
  const stop = settings.stop?.filter((text) => text.trim() !== '');
  if (stop !== undefined && stop.length !== settings.stop?.length) {
    losses.drop('stop', 'the provider refuses stop texts of white space only');
  }
  if (stop !== undefined && stop.length > 0) body['stop_sequences'] = stop;
  const tier = tierOf(settings.serviceTier, losses);
  if (tier !== undefined) body['service_tier'] = tier;
  dropKnobs(settings, UNKNOWN_KNOBS, 'messages', losses);
  return body;
}

/** The settings without those of sampling that a model of this generation refuses, each reported. */
export function samplingFor({ sampling }: Generation, settings: Settings, losses: Losses): Settings {
  if (sampling === 'free') return settings;
  const { temperature, topP, topK, ...rest } = settings;
  if (sampling === 'none') {
    for (const [name, value] of Object.entries({ temperature, top_p: topP, top_k: topK })) {
      if (value !== undefined) losses.drop(name, 'the model samples as it sees fit');
    }
    return rest;
  }
  if (temperature === undefined || topP === undefined) return settings;
  losses.drop('top_p', 'the model takes either that or a temperature');
  return { ...rest, temperature, ...(topK !== undefined && { topK }) };
}

/**
 * The text that a model of this generation shall go on with. White space at its end is refused and would only be said
 * again. Throws `Uncarried` where the model goes on in none.
 */
export function begunText(text: string, { prefill }: Generation, losses: Losses): string {
  if (!prefill) {
    throw new Uncarried(
      'messages',
      'this model goes on in no message of the assistant: the last one must be the user’s',
    );
  }
  const begun = text.trimEnd();
  if (begun !== text) losses.drop('messages', 'the provider refuses white space at the end of the last one');
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
      losses.drop('service_tier', `the messages form has no tier ${tier}`);
      return undefined;
  }
}

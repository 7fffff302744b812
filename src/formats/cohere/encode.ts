/**
 * Encodes a conversation as a Cohere chat request (docs.cohere.com/reference/chat). The encoding depends only on its
 * arguments, and an added turn leaves the earlier bytes unchanged.
 */
import type { Conversation, FunctionTool, OutputFormat, Settings, Tool } from '../conversation/conversation.ts';
import { budgetOf, effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf, listOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { dropKnobs, type Knob } from '../conversation/knobs.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { resultsFirst } from '../conversation/result-order.ts';
import { MessageEncoder } from './encode-messages.ts';

/** Members of this format that a client of any format may pass through: no other format uses these names. */
const OWN_MEMBERS = ['citation_options', 'documents', 'priority', 'safety_mode', 'strict_tools'];
const MOST_STOPS = 5;

/**
 * Throws `Uncarried` for content or features that this format cannot express. Reports dropped parameters to `losses`.
 */
export function encode(conversation: Conversation, target: EncodeTarget, losses: Losses): Fields {
  refuseUncarried(conversation);
  const encoder = new MessageEncoder(losses);
  encoder.encode(resultsFirst(conversation.messages));
  if (encoder.messages.length === 0) throw new Uncarried('messages', 'the cohere format requires a non-empty message');
  if (conversation.cache !== undefined) encoder.reportCache();
  const tools = encodeTools(conversation, encoder, losses);
  const responseFormat = encodeOutput(conversation.output);
  if (responseFormat !== undefined && tools['tools'] !== undefined) {
    throw new Uncarried('response_format', 'the cohere format cannot combine an output format with tools');
  }
  const own = ownMembers(conversation, losses);
  const documents = [...listOf(own['documents']), ...encoder.documents];
  const maxTokens = cappedTokens(conversation.settings.maxOutputTokens, target, losses);
  const thinking = encodeThinking(conversation, maxTokens ?? target.maxOutputTokens);
  return {
    model: target.model,
    messages: encoder.messages,
    stream: target.stream,
    ...tools,
    ...citationOptions(conversation),
    ...own,
    ...(documents.length > 0 && { documents }),
    ...(responseFormat !== undefined && { response_format: responseFormat }),
    ...(thinking !== undefined && { thinking }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...encodeSampling(conversation.settings, losses),
  };
}

function refuseUncarried(conversation: Conversation): void {
  if ((conversation.choices ?? 1) > 1) throw new Uncarried('n', 'the cohere format returns one choice');
  const modality = conversation.modalities?.find((name) => name !== 'text');
  if (modality !== undefined) throw new Uncarried('modalities', `the cohere format has no ${modality} output`);
  if (conversation.imageConfig !== undefined)
    throw new Uncarried('image_config', 'the cohere format cannot generate images');
  if (conversation.webSearch !== undefined)
    throw new Uncarried('web_search_options', 'the cohere format has no web search');
}

/** The format can force a call but not choose the tool, so a forced tool is sent alone. */
function encodeTools(conversation: Conversation, encoder: MessageEncoder, losses: Losses): Fields {
  const { toolChoice } = conversation;
  const given = conversation.tools ?? [];
  if (given.length === 0) return {};
  const functions = given.map(functionOf);
  const forced = toolChoice?.mode === 'tool' ? functions.filter(({ name }) => name === toolChoice.name) : functions;
  if (toolChoice?.mode === 'tool' && forced.length === 0) {
    throw new Uncarried('tool_choice', `no tool is named ${toolChoice.name}`);
  }
  if (functions.some(({ cache }) => cache !== undefined)) encoder.reportCache();
  if (conversation.settings.parallelToolCalls === false) {
    losses.drop('parallel_tool_calls', 'the model cannot limit parallel calls');
  }
  const strict = forced.every((tool) => tool.strict === true);
  if (!strict && forced.some((tool) => tool.strict === true)) {
    losses.drop('tools[].function.strict', 'the cohere format is strict for all tools or none');
  }
  return {
    tools: forced.map(encodeTool),
    ...(strict && { strict_tools: true }),
    ...encodeToolChoice(conversation),
  };
}

function functionOf(tool: Tool): FunctionTool {
  if (tool.type === 'function') return tool;
  const kind = fieldsOf(tool.value)['type'];
  throw new Uncarried(
    `tools of type ${typeof kind === 'string' ? kind : tool.origin}`,
    'only the format they came from has them',
  );
}

function encodeTool(tool: FunctionTool): Fields {
  return {
    type: 'function',
    function: {
      name: tool.name,
      ...(tool.description !== undefined && { description: tool.description }),
      parameters: tool.parameters ?? { type: 'object', properties: {} },
    },
  };
}

function encodeToolChoice({ toolChoice }: Conversation): Fields {
  switch (toolChoice?.mode) {
    case 'required':
    case 'tool':
      return { tool_choice: 'REQUIRED' };
    case 'none':
      return { tool_choice: 'NONE' };
    case 'opaque':
      throw new Uncarried(
        'tool_choice',
        `the cohere format cannot express a choice of the ${toolChoice.origin} format`,
      );
    default:
      return {};
  }
}

function encodeOutput(output: OutputFormat | undefined): Fields | undefined {
  switch (output?.type) {
    case undefined:
    case 'text':
      return undefined;
    case 'json':
      return { type: 'json_object' };
    case 'schema':
      return { type: 'json_object', ...(output.schema !== undefined && { json_schema: output.schema }) };
    default:
      throw new Uncarried('response_format', `the cohere format has no output format ${output!.type}`);
  }
}

/** Turns citations off if a document opts out and no other opts in. */
function citationOptions({ messages }: Conversation): Fields {
  const wishes = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'file' ? [part.citations] : [])),
  );
  return wishes.includes(false) && !wishes.includes(true) ? { citation_options: { mode: 'OFF' } } : {};
}

function encodeThinking(conversation: Conversation, cap: number | null): Fields | undefined {
  const { reasoning } = conversation;
  if (reasoning === undefined) return undefined;
  const effort = effortOf(reasoning, cap);
  if (effort === 'none') return { type: 'disabled' };
  const budget = budgetOf(reasoning, cap);
  if (typeof budget === 'number') return { type: 'enabled', token_budget: budget };
  return reasoning.enabled === true || reasoning.adaptive === true ? { type: 'enabled' } : undefined;
}

/** The client's cap, else the endpoint's, never above the gateway's; undefined if there is none. */
function cappedTokens(wanted: number | undefined, target: EncodeTarget, losses: Losses): number | undefined {
  const limit = target.maxOutputTokens;
  let cap = wanted ?? limit ?? undefined;
  if (cap !== undefined && limit !== null && cap > limit) {
    losses.drop('max_tokens', `${cap} is more than the endpoint's ${limit}`);
    cap = limit;
  }
  if (target.capOutputTokens === undefined) return cap;
  return Math.min(cap ?? target.capOutputTokens, target.capOutputTokens);
}

/** Settings with their name here and the range that the service accepts. */
const RANGES: readonly (readonly [keyof Settings, string, string, number, number])[] = [
  ['temperature', 'temperature', 'temperature', 0, 1],
  ['topP', 'p', 'top_p', 0.01, 0.99],
  ['topK', 'k', 'top_k', 0, 500],
  ['frequencyPenalty', 'frequency_penalty', 'frequency_penalty', 0, 1],
  ['presencePenalty', 'presence_penalty', 'presence_penalty', 0, 1],
];

const UNKNOWN_KNOBS: readonly Knob[] = [
  'topA',
  'minP',
  'repetitionPenalty',
  'topLogprobs',
  'logitBias',
  'serviceTier',
  'verbosity',
  'prediction',
  'promptCacheKey',
];

function encodeSampling(settings: Settings, losses: Losses): Fields {
  const body: Fields = {};
  for (const [name, own, wire, least, most] of RANGES) {
    const wanted = settings[name];
    if (typeof wanted !== 'number') continue;
    const value = Math.min(Math.max(wanted, least), most);
    if (value !== wanted) losses.drop(wire, `the provider accepts ${least} to ${most}; sent as ${value}`);
    body[own] = value;
  }
  if (settings.seed !== undefined) body['seed'] = settings.seed;
  if (settings.logprobs === true) body['logprobs'] = true;
  if (settings.stop !== undefined && settings.stop.length > 0) {
    if (settings.stop.length > MOST_STOPS)
      throw new Uncarried('stop', `the cohere format accepts at most ${MOST_STOPS} stop sequences`);
    body['stop_sequences'] = settings.stop;
  }
  dropKnobs(settings, UNKNOWN_KNOBS, 'cohere', losses);
  return body;
}

function ownMembers(conversation: Conversation, losses: Losses): Fields {
  const own: Fields = {};
  for (const members of Object.values(conversation.extras ?? {})) {
    for (const [name, value] of Object.entries(members)) {
      if (OWN_MEMBERS.includes(name)) own[name] = value;
      else losses.drop(name, 'the cohere format has no such field');
    }
  }
  return own;
}

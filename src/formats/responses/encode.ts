/**
 * Encodes a conversation as a request to a service that speaks the responses format. Items are encoded one by one in
 * order, so a new turn changes no earlier byte, and the prompt cache stays valid. The request tells the service
 * not to store the response.
 */
import type {
  Conversation,
  OpaqueTool,
  OutputFormat,
  ReasoningSettings,
  Tool,
  ToolChoice,
} from '../conversation/conversation.ts';
import { effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { namedProperties } from '../conversation/plain-schema.ts';
import { ItemEncoder, instructionsOf, promptOf } from './encode-items.ts';
import { INCLUDE_ENCRYPTED, INCLUDE_LOGPROBS, PLAIN_SETTINGS } from './fields.ts';

/**
 * Throws `Uncarried` for content or features that this format cannot express. Reports dropped parameters to `losses`.
 */
export function encode(conversation: Conversation, target: EncodeTarget, losses: Losses): Fields {
  const dialect = target.dialect.responses ?? {};
  refuseUncarried(conversation, dialect.refuses ?? []);
  const body: Fields = { model: target.model };
  const items = encodeInput(body, conversation, target, losses);
  encodeTools(body, conversation, losses);
  const cap = outputCap(conversation.settings.maxOutputTokens, target);
  if (cap !== undefined) body['max_output_tokens'] = cap;
  const reasoning = encodeReasoning(conversation.reasoning, cap ?? target.maxOutputTokens);
  if (reasoning !== undefined) body['reasoning'] = reasoning;
  encodeText(body, conversation);
  encodeSettings(body, conversation, target, losses);
  const include = new Set(listOf(conversation.extras?.responses?.['include']));
  if (conversation.settings.logprobs === true) include.add(INCLUDE_LOGPROBS);
  const thinks = reasoning !== undefined && reasoning['effort'] !== 'none';
  if (thinks || items.reasoned) include.add(INCLUDE_ENCRYPTED);
  if (include.size > 0) body['include'] = [...include];
  body['store'] = false;
  if (target.stream) body['stream'] = true;
  const userField = dialect.userField ?? 'user';
  if (userField !== 'none') body[userField] = target.user;
  encodeExtras(body, conversation, losses);
  for (const field of dialect.refuses ?? []) {
    if (!(field in body)) continue;
    delete body[field];
    losses.drop(field, 'the upstream does not accept it');
  }
  return body;
}

function refuseUncarried(conversation: Conversation, refuses: readonly string[]): void {
  const { choices, modalities, audio, imageConfig, settings, output } = conversation;
  if ((choices ?? 1) > 1) throw new Uncarried('n', 'the responses format returns one choice');
  const modality = modalities?.find((name) => name !== 'text' && (name !== 'image' || refuses.includes('modalities')));
  if (modality !== undefined) throw new Uncarried('modalities', `the endpoint cannot produce ${modality} output`);
  if (audio !== undefined) throw new Uncarried('audio', 'the responses format cannot produce audio');
  if (imageConfig !== undefined && refuses.includes('image_config')) {
    throw new Uncarried('image_config', 'the upstream cannot generate images in this format');
  }
  if (settings.stop !== undefined && settings.stop.length > 0) {
    throw new Uncarried('stop', 'the responses format has no stop sequences');
  }
  if (output?.type === 'grammar' || output?.type === 'python') {
    throw new Uncarried('response_format', `the responses format has no output format ${output.type}`);
  }
}

/** The output cap to send, within the upstream's bounds; undefined if there is no cap. */
export function outputCap(asked: number | undefined, target: EncodeTarget): number | undefined {
  const { capOutputTokens, maxOutputTokens } = target;
  if (asked === undefined && capOutputTokens === undefined) return undefined;
  const cap = Math.min(asked ?? Infinity, capOutputTokens ?? Infinity, maxOutputTokens ?? Infinity);
  return Math.max(cap, target.dialect.responses?.minOutputTokens ?? 1);
}

function encodeInput(body: Fields, conversation: Conversation, target: EncodeTarget, losses: Losses): ItemEncoder {
  let { messages } = conversation;
  const instructions = instructionsOf(messages[0]);
  if (instructions !== undefined) {
    body['instructions'] = instructions;
    messages = messages.slice(1);
  }
  const items = new ItemEncoder(target, losses);
  const prompt = messages.map(promptOf).find((found) => found !== undefined);
  if (prompt !== undefined) body['prompt'] = prompt;
  body['input'] = items.encode(prompt === undefined ? messages : messages.filter((one) => promptOf(one) === undefined));
  return items;
}

function encodeTools(body: Fields, conversation: Conversation, losses: Losses): void {
  const { toolChoice, settings, webSearch } = conversation;
  const tools = (conversation.tools ?? []).map(encodeTool);
  if (webSearch !== undefined) tools.push(webSearchTool(fieldsOf(webSearch)));
  if (tools.length === 0) {
    // Services reject a tool choice without tools. `none` and `auto` are then meaningless, so dropping them is no loss.
    if (toolChoice !== undefined && toolChoice.mode !== 'none' && toolChoice.mode !== 'auto') {
      losses.drop('tool_choice', 'there are no tools to choose from');
    }
    return;
  }
  body['tools'] = tools;
  if (toolChoice !== undefined) body['tool_choice'] = encodeToolChoice(toolChoice);
  if (settings.parallelToolCalls !== undefined) body['parallel_tool_calls'] = settings.parallelToolCalls;
}

function encodeTool(tool: Tool): unknown {
  if (tool.type === 'opaque') return tool.origin === 'responses' ? tool.value : customTool(tool);
  return {
    type: 'function',
    name: tool.name,
    ...(tool.description !== undefined && { description: tool.description }),
    parameters: namedProperties(tool.parameters ?? {}),
    // An absent `strict` means strict in this format, and schemas written for other formats would be rejected.
    strict: tool.strict ?? false,
    ...tool.extras?.responses,
  };
}

/** Chat's custom tool in this format: the members move from the nested object to the top level. */
function customTool(tool: OpaqueTool): Fields {
  const value = fieldsOf(tool.value);
  const custom = fieldsOf(value['custom']);
  if (tool.origin !== 'chat' || value['type'] !== 'custom') {
    throw new Uncarried('tools', `the responses format cannot express a tool of the ${tool.origin} format`);
  }
  const { format, ...members } = custom;
  const { grammar, ...kind } = fieldsOf(format);
  return { type: 'custom', ...members, ...(isFields(format) && { format: { ...kind, ...fieldsOf(grammar) } }) };
}

/** Chat's `web_search_options` as the equivalent tool. */
function webSearchTool(options: Fields): Fields {
  const { user_location: location, ...others } = options;
  const { approximate, ...kind } = fieldsOf(location);
  return {
    type: 'web_search',
    ...others,
    ...(isFields(location) && { user_location: { ...kind, ...fieldsOf(approximate) } }),
  };
}

function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.mode === 'tool') {
    return {
      type: 'function',
      name: choice.name,
      ...(choice.namespace !== undefined && { namespace: choice.namespace }),
    };
  }
  if (choice.mode !== 'opaque') return choice.mode;
  if (choice.origin === 'responses') return choice.value;
  const value = fieldsOf(choice.value);
  if (choice.origin === 'chat' && value['type'] === 'custom') {
    return { type: 'custom', name: fieldsOf(value['custom'])['name'] };
  }
  if (choice.origin === 'chat' && value['type'] === 'allowed_tools') {
    const { mode, tools } = fieldsOf(value['allowed_tools']);
    const named = listOf(tools).map((tool) => {
      const { type, ...members } = fieldsOf(tool);
      return { type, ...fieldsOf(members[textOf(type)]) };
    });
    return { type: 'allowed_tools', mode, tools: named };
  }
  throw new Uncarried('tool_choice', `the responses format cannot express a choice of the ${choice.origin} format`);
}

/** `cap` is the output cap that is sent. Reasoning is requested as a summary unless it is to be hidden. */
export function encodeReasoning(settings: ReasoningSettings | undefined, cap: number | null): Fields | undefined {
  if (settings === undefined) return undefined;
  const reasoning: Fields = {};
  const effort = effortOf(settings, cap);
  if (effort !== undefined) reasoning['effort'] = effort;
  const hidden = settings.exclude === true || effort === 'none';
  const summary = settings.summary ?? (hidden ? undefined : 'auto');
  if (summary !== undefined) reasoning['summary'] = summary;
  Object.assign(reasoning, settings.extras?.responses);
  return Object.keys(reasoning).length === 0 ? undefined : reasoning;
}

function encodeText(body: Fields, { output, settings, extras }: Conversation): void {
  const text: Fields = { ...fieldsOf(extras?.responses?.['text']) };
  if (output !== undefined) text['format'] = encodeOutput(output);
  if (settings.verbosity !== undefined) text['verbosity'] = settings.verbosity;
  if (Object.keys(text).length > 0) body['text'] = text;
}

function encodeOutput(output: OutputFormat): Fields {
  switch (output.type) {
    case 'json':
      return { type: 'json_object' };
    case 'schema':
      if (output.schema === undefined) throw new Uncarried('response_format', 'the responses format requires a schema');
      return {
        type: 'json_schema',
        // This format requires a name; other formats have none.
        name: output.name ?? 'answer',
        ...(output.description !== undefined && { description: output.description }),
        schema: output.schema,
        ...(output.strict !== undefined && { strict: output.strict }),
      };
    default:
      return { type: output.type };
  }
}

/** Parameters of other formats that this one lacks, with their wire names. */
const LACKING = [
  ['topA', 'top_a'],
  ['minP', 'min_p'],
  ['repetitionPenalty', 'repetition_penalty'],
  ['seed', 'seed'],
  ['logitBias', 'logit_bias'],
  ['prediction', 'prediction'],
] as const;

function encodeSettings(body: Fields, conversation: Conversation, target: EncodeTarget, losses: Losses): void {
  const { settings } = conversation;
  for (const [field, name] of PLAIN_SETTINGS) {
    if (settings[name] !== undefined && !(field in body) && name !== 'parallelToolCalls') body[field] = settings[name];
  }
  for (const [name, field] of LACKING) {
    if (settings[name] !== undefined) losses.drop(field, 'the responses format has no such field');
  }
  const tier = target.serviceTier === undefined ? settings.serviceTier : target.serviceTier;
  if (tier !== undefined && tier !== null) body['service_tier'] = tier;
  if (conversation.modalities?.includes('image')) body['modalities'] = conversation.modalities;
  if (conversation.imageConfig !== undefined) body['image_config'] = conversation.imageConfig;
}

function encodeExtras(body: Fields, conversation: Conversation, losses: Losses): void {
  for (const [format, extras] of Object.entries(conversation.extras ?? {})) {
    for (const [key, value] of Object.entries(extras)) {
      if (format !== 'responses') losses.drop(key, 'the responses format has no such field');
      else if (!(key in body)) body[key] = value;
    }
  }
}

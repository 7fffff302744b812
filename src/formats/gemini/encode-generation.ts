/** Encodes `generationConfig`: sampling, output format and thinking. */
import type { Conversation, Effort, Settings } from '../conversation/conversation.ts';
import { budgetOf, effortOf } from '../conversation/effort.ts';
import { type Fields, fieldsOf, textOrUndefined } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { dropKnobs, type Knob } from '../conversation/knobs.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import type { Family, Thinking } from './family.ts';
import { geminiSchema } from './json-schema.ts';

const MOST_STOPS = 5;
const MOST_CANDIDATES = 8;
const MOST_LOGPROBS = 20;
const SEEDS = 2 ** 31;

export function encodeGeneration(
  conversation: Conversation,
  target: EncodeTarget,
  family: Family,
  losses: Losses,
): Fields {
  const { settings } = conversation;
  const config: Fields = {};
  const cap = outputCap(settings.maxOutputTokens, target);
  if (cap !== undefined) config['maxOutputTokens'] = cap;
  encodeSampling(config, settings, losses);
  if ((conversation.choices ?? 1) > MOST_CANDIDATES) {
    throw new Uncarried('n', `the provider returns at most ${MOST_CANDIDATES} choices`);
  }
  if (conversation.choices !== undefined) config['candidateCount'] = conversation.choices;
  encodeOutput(config, conversation, family, losses);
  encodeModalities(config, conversation, losses);
  const thinking = encodeThinking(conversation, cap ?? target.maxOutputTokens, family.thinking, losses);
  if (thinking !== undefined) config['thinkingConfig'] = thinking;
  return config;
}

/** The output cap within the endpoint's bounds; undefined if there is none. */
function outputCap(asked: number | undefined, { capOutputTokens, maxOutputTokens }: EncodeTarget): number | undefined {
  if (asked === undefined && capOutputTokens === undefined) return undefined;
  return Math.max(1, Math.min(asked ?? Infinity, capOutputTokens ?? Infinity, maxOutputTokens ?? Infinity));
}

const PLAIN = [
  ['temperature', 'temperature'],
  ['topP', 'topP'],
  ['topK', 'topK'],
  ['presencePenalty', 'presencePenalty'],
  ['frequencyPenalty', 'frequencyPenalty'],
] as const;

const UNKNOWN_KNOBS: readonly Knob[] = [
  'topA',
  'minP',
  'repetitionPenalty',
  'logitBias',
  'verbosity',
  'prediction',
  'promptCacheKey',
];

function encodeSampling(config: Fields, settings: Settings, losses: Losses): void {
  for (const [name, wire] of PLAIN) if (settings[name] !== undefined) config[wire] = settings[name];
  // The service accepts only 32-bit seeds. The remainder is deterministic, so equal seeds stay equal.
  if (settings.seed !== undefined) config['seed'] = settings.seed % SEEDS;
  const stop = settings.stop?.filter((text) => text !== '');
  if (stop !== undefined && stop.length > MOST_STOPS) {
    throw new Uncarried('stop', `the provider accepts at most ${MOST_STOPS} stop sequences`);
  }
  if (stop !== undefined && stop.length > 0) config['stopSequences'] = stop;
  if (settings.logprobs === true) {
    config['responseLogprobs'] = true;
    if (settings.topLogprobs !== undefined) config['logprobs'] = Math.min(settings.topLogprobs, MOST_LOGPROBS);
  }
  if (settings.parallelToolCalls === false) {
    losses.drop('parallel_tool_calls', 'the provider cannot limit parallel calls');
  }
  dropKnobs(settings, UNKNOWN_KNOBS, 'gemini', losses);
}

function encodeOutput(
  config: Fields,
  { output, tools, toolChoice }: Conversation,
  family: Family,
  losses: Losses,
): void {
  if (output === undefined || output.type === 'text') return;
  if (output.type !== 'json' && output.type !== 'schema') {
    throw new Uncarried('response_format', `the gemini format has no output format ${output.type}`);
  }
  if (!family.third && (tools?.length ?? 0) > 0 && toolChoice?.mode !== 'none') {
    throw new Uncarried('response_format', 'this model cannot combine tools with JSON output');
  }
  config['responseMimeType'] = 'application/json';
  if (output.type === 'schema' && output.schema !== undefined) {
    config['responseJsonSchema'] = geminiSchema(output.schema, 'response_format', losses);
  }
}

const MODALITIES: Record<string, string> = { text: 'TEXT', image: 'IMAGE', audio: 'AUDIO' };

function encodeModalities(config: Fields, { modalities, audio, imageConfig }: Conversation, losses: Losses): void {
  if (modalities !== undefined) {
    const unknown = modalities.find((kind) => MODALITIES[kind] === undefined);
    if (unknown !== undefined) throw new Uncarried('modalities', `the gemini format has no ${unknown} output`);
    // Audio models return no text, although the chat format requests both.
    const wanted = modalities.includes('audio') ? ['audio'] : modalities;
    config['responseModalities'] = wanted.map((kind) => MODALITIES[kind]);
  }
  const sound = fieldsOf(audio);
  const voiceName = textOrUndefined(sound['voice']) ?? textOrUndefined(fieldsOf(sound['voice'])['id']);
  if (voiceName !== undefined) config['speechConfig'] = { voiceConfig: { prebuiltVoiceConfig: { voiceName } } };
  const format = textOrUndefined(sound['format']);
  if (format !== undefined && !/^pcm/.test(format)) losses.drop('audio.format', 'the provider returns audio as PCM');
  if (imageConfig === undefined) return;
  const image: Fields = {};
  for (const [name, value] of Object.entries(fieldsOf(imageConfig))) {
    const known = IMAGE_SETTINGS[name];
    if (known === undefined) losses.drop(`image_config.${name}`, 'the provider does not support it');
    else image[known] = value;
  }
  if (Object.keys(image).length > 0) config['imageConfig'] = image;
}

const IMAGE_SETTINGS: Record<string, string> = {
  aspect_ratio: 'aspectRatio',
  aspectRatio: 'aspectRatio',
  image_size: 'imageSize',
  imageSize: 'imageSize',
};

/** Maps effort or budget (conversation/effort.ts) to the parameters and bounds of the model's family. */
function encodeThinking(
  { reasoning }: Conversation,
  cap: number | null,
  thinking: Thinking,
  losses: Losses,
): Fields | undefined {
  if (reasoning === undefined) return undefined;
  const effort = effortOf(reasoning, cap);
  if (thinking.by === 'none') {
    if (effort !== 'none' && effort !== undefined) losses.drop('reasoning', 'this model has no reasoning');
    return undefined;
  }
  const shown = { includeThoughts: reasoning.exclude !== true && effort !== 'none' };
  if (thinking.by === 'level') {
    if (effort === undefined) return shown;
    if (effort === 'none') losses.drop('reasoning', 'this model cannot disable reasoning: its minimum is used');
    return { ...shown, thinkingLevel: levelFor(effort, thinking.words) };
  }
  const budget = budgetOf(reasoning, cap);
  if (budget === undefined) return { ...shown, ...(reasoning.adaptive === true && { thinkingBudget: -1 }) };
  if (budget === null && !thinking.mayStop)
    losses.drop('reasoning', 'this model cannot disable reasoning: its minimum is used');
  if (budget === null) return { ...shown, thinkingBudget: thinking.mayStop ? 0 : thinking.least };
  return { ...shown, thinkingBudget: Math.min(Math.max(budget, thinking.least), thinking.most) };
}

const ORDER: readonly Effort[] = ['minimal', 'low', 'medium', 'high'];

/** The family's word for the effort, else the next stronger one; its strongest for efforts beyond the list. */
function levelFor(effort: Effort, words: readonly string[]): string {
  const wanted = effort === 'none' ? 0 : ORDER.indexOf(effort);
  if (wanted === -1) return words.at(-1)!;
  return ORDER.slice(wanted).find((word) => words.includes(word)) ?? words.at(-1)!;
}

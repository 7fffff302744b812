/** `generationConfig` of a client's request. */
import { invalidField } from '../../base/errors.ts';
import type { Conversation, Effort, OutputFormat, ReasoningSettings, Settings } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, nonEmptyText, textOf } from '../conversation/fields.ts';
import { jsonSchemaOf } from './google-schema.ts';
import { listMember, member, objectMember, otherMembers, refuseTwins } from './names.ts';

const AT = 'generationConfig';

type Rule = readonly [kind: 'number' | 'integer' | 'boolean', least?: number, most?: number];

const SETTINGS: Readonly<Record<string, readonly [name: keyof Settings, ...Rule]>> = {
  temperature: ['temperature', 'number', 0, 2],
  topP: ['topP', 'number', 0, 1],
  topK: ['topK', 'number', 0],
  maxOutputTokens: ['maxOutputTokens', 'integer', 1],
  seed: ['seed', 'integer'],
  presencePenalty: ['presencePenalty', 'number', -2, 2],
  frequencyPenalty: ['frequencyPenalty', 'number', -2, 2],
  responseLogprobs: ['logprobs', 'boolean'],
  logprobs: ['topLogprobs', 'integer', 0, 20],
};
const MOST_CANDIDATES = 128;
const MOST_STOPS = 16;
const LEVELS: Readonly<Record<string, Effort>> = { MINIMAL: 'minimal', LOW: 'low', MEDIUM: 'medium', HIGH: 'high' };
const SCHEMAS = ['_responseJsonSchema', 'responseJsonSchema', 'responseSchema'];
const READ = new Set([
  ...Object.keys(SETTINGS),
  ...SCHEMAS,
  'candidateCount',
  'stopSequences',
  'responseMimeType',
  'responseModalities',
  'thinkingConfig',
  'imageConfig',
]);

/** Reads the configuration into the conversation. @throws GatewayError 400 with the path of a faulty setting */
export function decodeGeneration(config: Fields, conversation: Conversation): void {
  refuseTwins(config, `${AT}.`);
  for (const [name, [setting, ...rule]] of Object.entries(SETTINGS)) {
    const value = ruled(config, name, rule);
    if (value !== undefined) Object.assign(conversation.settings, { [setting]: value });
  }
  const stop = texts(config, 'stopSequences');
  if (stop.length > MOST_STOPS) throw invalidField(`${AT}.stopSequences`, `must have at most ${MOST_STOPS} entries`);
  if (stop.length > 0) conversation.settings.stop = stop;
  const choices = ruled(config, 'candidateCount', ['integer', 1, MOST_CANDIDATES]);
  if (choices !== undefined) conversation.choices = choices as number;
  const modalities = texts(config, 'responseModalities').map((kind) => kind.toLowerCase());
  if (modalities.length > 0) conversation.modalities = modalities;
  decodeMediaSettings(config, conversation);
  const output = outputOf(config);
  if (output !== undefined) conversation.output = output;
  const reasoning = thinkingOf(objectMember(config, 'thinkingConfig', `${AT}.thinkingConfig`));
  if (reasoning !== undefined) conversation.reasoning = reasoning;
  const others = otherMembers(config, READ);
  if (others !== undefined) {
    conversation.extras = { gemini: { ...conversation.extras?.gemini, generationConfig: others } };
  }
}

/** @throws GatewayError 400 for a value that breaks the rule */
function ruled(config: Fields, name: string, [kind, least = -Infinity, most = Infinity]: Rule): unknown {
  const value = member(config, name);
  if (value === undefined) return undefined;
  const isNumber = typeof value === 'number' && value >= least && value <= most;
  const fits =
    kind === 'boolean' ? typeof value === 'boolean' : isNumber && (kind === 'number' || Number.isSafeInteger(value));
  if (fits) return value;
  const bounds = [
    ...(least === -Infinity ? [] : [`at least ${least}`]),
    ...(most === Infinity ? [] : [`at most ${most}`]),
  ].join(' and ');
  throw invalidField(`${AT}.${name}`, `must be ${ARTICLES[kind]}${bounds === '' ? '' : ` of ${bounds}`}`);
}

const ARTICLES = { number: 'a number', integer: 'an integer', boolean: 'true or false' };

function texts(config: Fields, name: string): string[] {
  return listMember(config, name, `${AT}.${name}`).map((value, index) => {
    if (typeof value !== 'string') throw invalidField(`${AT}.${name}[${index}]`, 'must be a string');
    return value;
  });
}

function decodeMediaSettings(config: Fields, conversation: Conversation): void {
  const image = objectMember(config, 'imageConfig', `${AT}.imageConfig`);
  const [ratio, size] = [member(image, 'aspectRatio'), member(image, 'imageSize')];
  if (ratio !== undefined || size !== undefined) {
    conversation.imageConfig = {
      ...(ratio !== undefined && { aspect_ratio: ratio }),
      ...(size !== undefined && { image_size: size }),
    };
  }
  // The whole of it also stays for services of this format.
  const speech = fieldsOf(member(config, 'speechConfig'));
  const prebuilt = fieldsOf(member(fieldsOf(member(speech, 'voiceConfig')), 'prebuiltVoiceConfig'));
  const voice = nonEmptyText(member(prebuilt, 'voiceName'));
  if (voice !== undefined) conversation.audio = { voice, format: 'pcm16' };
}

function outputOf(config: Fields): OutputFormat | undefined {
  const type = member(config, 'responseMimeType') ?? '';
  const [name, other] = SCHEMAS.filter((each) => member(config, each) !== undefined);
  const given = name === undefined ? undefined : member(config, name);
  if (given !== undefined && !isFields(given)) throw invalidField(`${AT}.${name}`, 'must be an object');
  if (other !== undefined) throw invalidField(`${AT}.${other}`, `cannot be used together with ${name}`);
  if (type !== '' && type !== 'text/plain' && type !== 'application/json') {
    throw invalidField(`${AT}.responseMimeType`, 'must be text/plain or application/json');
  }
  if (type !== 'application/json') {
    // A schema without effect would be a surprise; Google refuses it, too.
    if (given !== undefined) throw invalidField(`${AT}.responseMimeType`, `must be application/json with ${name}`);
    return undefined;
  }
  if (given === undefined) return { type: 'json' };
  return { type: 'schema', name: 'response', schema: name === 'responseSchema' ? jsonSchemaOf(given) : given };
}

function thinkingOf(thinking: Fields): ReasoningSettings | undefined {
  const at = `${AT}.thinkingConfig`;
  refuseTwins(thinking, `${at}.`);
  const [level, budget] = [member(thinking, 'thinkingLevel'), member(thinking, 'thinkingBudget')];
  const shown = member(thinking, 'includeThoughts');
  if (shown !== undefined && typeof shown !== 'boolean') {
    throw invalidField(`${at}.includeThoughts`, 'must be true or false');
  }
  if (level !== undefined) {
    const word = textOf(level).toUpperCase();
    const effort = Object.hasOwn(LEVELS, word) ? LEVELS[word] : undefined;
    if (effort !== undefined && budget !== undefined) {
      throw invalidField(`${at}.thinkingBudget`, 'cannot be used together with thinkingLevel');
    }
    if (effort !== undefined) return { effort };
    if (word !== 'THINKING_LEVEL_UNSPECIFIED') {
      throw invalidField(`${at}.thinkingLevel`, `must be one of ${Object.keys(LEVELS).join(', ')}`);
    }
  }
  if (budget !== undefined) {
    if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < -1) {
      throw invalidField(`${at}.thinkingBudget`, 'must be -1, 0 or a number of tokens');
    }
    if (budget === 0) return { effort: 'none' };
    if (budget > 0) return { budgetTokens: budget };
  }
  // The model decides how much it thinks.
  return budget === -1 || showsThoughts(thinking) ? { enabled: true, adaptive: true } : undefined;
}

/** @param thinking `thinkingConfig` */
export function showsThoughts(thinking: Fields): boolean {
  return member(thinking, 'includeThoughts') === true;
}

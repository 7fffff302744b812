/** `generationConfig` as members of a chat request. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, isFields, textOf } from '../conversation/fields.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { camelCase, listMember, member, objectMember } from './names.ts';

const AT = 'generationConfig';
/** Names of the same thing in both formats. */
const SAME = new Map(
  Object.entries({
    temperature: 'temperature',
    topP: 'top_p',
    topK: 'top_k',
    maxOutputTokens: 'max_tokens',
    candidateCount: 'n',
    seed: 'seed',
    presencePenalty: 'presence_penalty',
    frequencyPenalty: 'frequency_penalty',
    responseLogprobs: 'logprobs',
    logprobs: 'top_logprobs',
  }),
);
const READ = new Set([
  ...SAME.keys(),
  'stopSequences',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  '_responseJsonSchema',
  'responseModalities',
  'thinkingConfig',
  'imageConfig',
]);
/** Passed on to Google's services, and without effect elsewhere. */
const PASSED = new Set([
  'mediaResolution',
  'speechConfig',
  'enableEnhancedCivicAnswers',
  'audioTimestamp',
  'routingConfig',
]);
const LEVELS = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];
/** Of chat. */
const MOST_STOPS = 4;

export function generationMembers(config: Fields): { members: Fields; thoughts: boolean } {
  const members: Fields = {};
  for (const [given, value] of Object.entries(config)) {
    const name = camelCase(given);
    if (value === null || value === undefined) continue;
    const same = SAME.get(name);
    if (same !== undefined) members[same] = value;
    else if (PASSED.has(name)) members[name] = value;
    else if (!READ.has(name)) throw invalidField(`${AT}.${given}`, 'is not supported');
  }
  const stops = listMember(config, 'stopSequences', `${AT}.stopSequences`);
  if (stops.length > MOST_STOPS) throw invalidField(`${AT}.stopSequences`, `must have at most ${MOST_STOPS} entries`);
  if (stops.length > 0) members['stop'] = stops;
  const modalities = listMember(config, 'responseModalities', `${AT}.responseModalities`).map((each, index) => {
    if (typeof each !== 'string') throw invalidField(`${AT}.responseModalities[${index}]`, 'must be a string');
    return each.toLowerCase();
  });
  if (modalities.length > 0) members['modalities'] = modalities;
  const { aspectRatio, imageSize } = camelCased(objectMember(config, 'imageConfig', `${AT}.imageConfig`));
  if (aspectRatio !== undefined || imageSize !== undefined) {
    members['image_config'] = { aspect_ratio: aspectRatio, image_size: imageSize };
  }
  const format = formatOf(config);
  if (format !== undefined) members['response_format'] = format;
  const { reasoning, thoughts } = thinkingOf(
    camelCased(objectMember(config, 'thinkingConfig', `${AT}.thinkingConfig`)),
  );
  if (reasoning !== undefined) members['reasoning'] = reasoning;
  return { members, thoughts };
}

function camelCased(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [camelCase(name), value]));
}

function formatOf(config: Fields): Fields | undefined {
  const type = member(config, 'responseMimeType') || 'text/plain';
  const json = config['_responseJsonSchema'] ?? member(config, 'responseJsonSchema');
  const schema = json ?? jsonSchemaOf(member(config, 'responseSchema') ?? undefined);
  if (schema !== undefined && !isFields(schema)) throw invalidField(`${AT}.responseSchema`, 'must be an object');
  if (type === 'text/plain') return undefined;
  if (type !== 'application/json')
    throw invalidField(`${AT}.responseMimeType`, 'must be text/plain or application/json');
  return schema === undefined
    ? { type: 'json_object' }
    : { type: 'json_schema', json_schema: { name: 'response', schema } };
}

function thinkingOf({ includeThoughts, thinkingBudget: budget, thinkingLevel: level }: Fields) {
  const thoughts = includeThoughts === true;
  if (level !== undefined) {
    const word = textOf(level).toUpperCase();
    if (!LEVELS.includes(word))
      throw invalidField(`${AT}.thinkingConfig.thinkingLevel`, `must be one of ${LEVELS.join(', ')}`);
    return { thoughts, reasoning: { effort: word.toLowerCase() } };
  }
  if (budget !== undefined) {
    if (typeof budget !== 'number' || !Number.isInteger(budget) || budget < -1) {
      throw invalidField(`${AT}.thinkingConfig.thinkingBudget`, 'must be -1, 0 or a number of tokens');
    }
    // -1: the model decides.
    return {
      thoughts,
      reasoning: budget === 0 ? { effort: 'none' } : budget === -1 ? { enabled: true } : { max_tokens: budget },
    };
  }
  return { thoughts, reasoning: thoughts ? { enabled: true } : undefined };
}

/** Chat members that have other names, or another shape, here. */
const OTHERS: Readonly<Record<string, string>> = {
  stop: 'stopSequences',
  modalities: 'responseModalities',
  image_config: 'imageConfig',
  response_format: 'responseSchema',
  reasoning: 'thinkingConfig',
};

/** The path of a setting whose member of chat is this one; undefined for members that are not settings. */
export function settingOf(name: string): string | undefined {
  const same = [...SAME].find(([, chat]) => chat === name)?.[0];
  const own = same ?? (Object.hasOwn(OTHERS, name) ? OTHERS[name] : PASSED.has(name) ? name : undefined);
  return own && `${AT}.${own}`;
}

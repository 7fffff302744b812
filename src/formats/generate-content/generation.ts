/** `generationConfig` as members of a chat request. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { camelCase, member } from './names.ts';

const AT = 'generationConfig';
/** Names of the same thing in both formats. */
const SAME: Readonly<Record<string, string>> = {
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
};
const READ = new Set([
  ...Object.keys(SAME),
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
    if (SAME[name] !== undefined) members[SAME[name]] = value;
    else if (PASSED.has(name)) members[name] = value;
    else if (!READ.has(name)) throw invalidField(`${AT}.${given}`, 'is not supported');
  }
  const stops = listOf(member(config, 'stopSequences'));
  if (stops.length > MOST_STOPS) throw invalidField(`${AT}.stopSequences`, `must have at most ${MOST_STOPS} entries`);
  if (stops.length > 0) members['stop'] = stops;
  const modalities = listOf(member(config, 'responseModalities')).map((each) => textOf(each).toLowerCase());
  if (modalities.length > 0) members['modalities'] = modalities;
  const { aspectRatio, imageSize } = camelCased(fieldsOf(member(config, 'imageConfig')));
  if (aspectRatio !== undefined || imageSize !== undefined) {
    members['image_config'] = { aspect_ratio: aspectRatio, image_size: imageSize };
  }
  const format = formatOf(config);
  if (format !== undefined) members['response_format'] = format;
  const { reasoning, thoughts } = thinkingOf(camelCased(fieldsOf(member(config, 'thinkingConfig'))));
  if (reasoning !== undefined) members['reasoning'] = reasoning;
  return { members, thoughts };
}

function camelCased(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [camelCase(name), value]));
}

function formatOf(config: Fields): Fields | undefined {
  const type = textOf(member(config, 'responseMimeType')) || 'text/plain';
  const json = config['_responseJsonSchema'] ?? member(config, 'responseJsonSchema');
  const schema = json ?? jsonSchemaOf(member(config, 'responseSchema'));
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

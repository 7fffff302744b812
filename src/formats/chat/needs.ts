/** What a chat request requires of an endpoint, in terms of the catalog's `supported_parameters`. */

import { type Fields, fieldsOrUndefined, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { Needs } from '../conversation/format.ts';
import { onlyServerTools } from '../server-tools/index.ts';

/** Request members that the catalog lists under other or several names. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  max_tokens: ['max_tokens', 'max_completion_tokens'],
  max_completion_tokens: ['max_completion_tokens', 'max_tokens'],
  reasoning: ['reasoning', 'include_reasoning'],
  include_reasoning: ['include_reasoning', 'reasoning'],
  reasoning_effort: ['reasoning_effort', 'reasoning'],
};

/** Members that the catalog lists under their own name. */
const PARAMETERS = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'top_a',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'max_tokens',
  'max_completion_tokens',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'prediction',
  'seed',
  'stop',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'include_reasoning',
  'reasoning',
  'reasoning_effort',
  'web_search_options',
  'verbosity',
];

const FORMAT_FEATURES: Readonly<Record<string, string>> = {
  json_schema: 'structured_outputs',
  json_object: 'response_format',
};

/** Returns undefined for text only. `inputs` was collected while counting media. */
export function needsOf(body: Fields, inputs: readonly string[], everyParameter: boolean): Needs | undefined {
  const outputs = listOf(body['modalities']).filter((kind) => typeof kind === 'string' && kind !== 'text') as string[];
  const features: string[] = [];
  if (listOf(body['tools']).length > 0 || listOf(body['functions']).length > 0) features.push('tools');
  const format = FORMAT_FEATURES[String(fieldsOrUndefined(body['response_format'])?.['type'])];
  if (format !== undefined) features.push(format);
  const parameters = everyParameter ? parametersOf(body, features) : [];
  if (inputs.length + outputs.length + features.length + parameters.length === 0) return undefined;
  return { inputs, outputs, features, parameters, ...(features.includes('tools') && toolsOf(body)) };
}

function parametersOf(body: Fields, features: readonly string[]): (readonly string[])[] {
  const sent = PARAMETERS.filter((name) => {
    const value = body[name];
    return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
  });
  return [...new Set([...sent, ...features])].map((name) => ALIASES[name] ?? [name]);
}

function toolsOf(body: Fields): Pick<Needs, 'tools' | 'serverTools'> {
  const others = listOf(body['functions']).length > 0;
  return { tools: toolNames(body), serverTools: others ? undefined : onlyServerTools(listOf(body['tools']), 'chat') };
}

function toolNames(body: Fields): string[] {
  const tools = listOf(body['tools']).map(
    (tool) =>
      fieldsOrUndefined(fieldsOrUndefined(tool)?.['function']) ??
      fieldsOrUndefined(fieldsOrUndefined(tool)?.['custom']),
  );
  return [...tools, ...listOf(body['functions']).map(fieldsOrUndefined)].flatMap(
    (tool) => nonEmptyText(tool?.['name']) ?? [],
  );
}

/** What a client's request requires of an endpoint, in terms of the catalog's `supported_parameters`. */
import { type Fields, fieldsOf, isFields, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { Needs } from '../conversation/format.ts';
import { onlyServerTools } from '../server-tools/index.ts';
import { member } from './names.ts';

/** Settings and their names in the catalog. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  temperature: ['temperature'],
  topP: ['top_p'],
  topK: ['top_k'],
  maxOutputTokens: ['max_tokens', 'max_completion_tokens'],
  seed: ['seed'],
  presencePenalty: ['presence_penalty'],
  frequencyPenalty: ['frequency_penalty'],
  responseLogprobs: ['logprobs'],
  logprobs: ['top_logprobs'],
  stopSequences: ['stop'],
  thinkingConfig: ['reasoning', 'include_reasoning'],
};

/** Returns undefined for text only. `inputs` was collected while counting media. */
export function needsOf(request: Fields, inputs: readonly string[], everyParameter: boolean): Needs | undefined {
  const config = fieldsOf(member(request, 'generationConfig'));
  const outputs = wordsIn(member(config, 'responseModalities')).flatMap((word) => {
    const kind = word.toLowerCase();
    return kind === 'text' || kind === 'modality_unspecified' ? [] : [kind];
  });
  const { names, list, some } = toolsIn(request);
  const features = [...(some ? ['tools'] : []), ...outputFeature(config)];
  const parameters = everyParameter ? parametersOf(request, config, features) : [];
  if (inputs.length + outputs.length + features.length + parameters.length === 0) return undefined;
  const needs = { inputs, outputs, features, parameters };
  return some ? { ...needs, tools: names, serverTools: onlyServerTools(list, 'gemini') } : needs;
}

function outputFeature(config: Fields): string[] {
  if (member(config, 'responseMimeType') !== 'application/json') return [];
  const schemas = ['responseSchema', 'responseJsonSchema', '_responseJsonSchema'];
  return [schemas.some((name) => isFields(member(config, name))) ? 'structured_outputs' : 'response_format'];
}

function parametersOf(request: Fields, config: Fields, features: readonly string[]): (readonly string[])[] {
  const sent = Object.entries(PARAMETERS).flatMap(([name, names]) => {
    const value = member(config, name);
    return value === undefined || value === false || (Array.isArray(value) && value.length === 0) ? [] : [names];
  });
  const chooses =
    fieldsOf(member(fieldsOf(member(request, 'toolConfig')), 'functionCallingConfig'))['mode'] !== undefined;
  return [...sent, ...features.map((name) => [name]), ...(chooses ? [['tool_choice']] : [])];
}

interface Declared {
  /** The entries of the member. */
  list: readonly unknown[];
  /** Of functions. */
  names: string[];
  some: boolean;
}

function toolsIn(request: Fields): Declared {
  const { tools } = request;
  const list = isFields(tools) ? [tools] : listOf(tools);
  const names: string[] = [];
  let some = false;
  for (const entry of list) {
    const tool = fieldsOf(entry);
    const functions = member(tool, 'functionDeclarations');
    for (const each of isFields(functions) ? [functions] : listOf(functions)) {
      const name = nonEmptyText(fieldsOf(each)['name']);
      if (name !== undefined) names.push(name);
    }
    const others = Object.keys(tool).length - (functions === undefined ? 0 : 1);
    some ||= others > 0 || names.length > 0;
  }
  return { list, names, some };
}

function wordsIn(value: unknown): string[] {
  const list = typeof value === 'string' ? [value] : listOf(value);
  return list.filter((each) => typeof each === 'string');
}

/** What a request in the responses format requires of an endpoint, in terms of the catalog's `supported_parameters`. */
import { type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { Needs } from '../conversation/format.ts';
import { onlyServerTools } from '../server-tools/index.ts';

/** Request fields and their names in the catalog. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  temperature: ['temperature'],
  top_p: ['top_p'],
  top_k: ['top_k'],
  frequency_penalty: ['frequency_penalty'],
  presence_penalty: ['presence_penalty'],
  top_logprobs: ['top_logprobs', 'logprobs'],
  max_output_tokens: ['max_tokens', 'max_completion_tokens'],
  tools: ['tools'],
  tool_choice: ['tool_choice'],
  parallel_tool_calls: ['parallel_tool_calls'],
  reasoning: ['reasoning', 'reasoning_effort', 'include_reasoning'],
};

const FORMAT_FEATURES: Readonly<Record<string, string>> = {
  json_schema: 'structured_outputs',
  json_object: 'response_format',
};

/** Undefined for a plain text request. `inputs` were collected while counting media. */
export function needsOf(request: Fields, inputs: readonly string[], everyParameter: boolean): Needs | undefined {
  const outputs = listOf(request['modalities']).flatMap((kind) =>
    kind === 'text' ? [] : (textOrUndefined(kind) ?? []),
  );
  const features: string[] = [];
  const tools = listOf(request['tools']);
  if (tools.length > 0) features.push('tools');
  const format = FORMAT_FEATURES[String(fieldsOf(fieldsOf(request['text'])['format'])['type'])];
  if (format !== undefined) features.push(format);
  const parameters = everyParameter ? parametersOf(request, features) : [];
  if (inputs.length + outputs.length + features.length + parameters.length === 0) return undefined;
  if (tools.length === 0) return { inputs, outputs, features, parameters };
  const serverTools = onlyServerTools(tools, 'responses');
  return { inputs, outputs, features, parameters, tools: tools.flatMap(namesOf), serverTools };
}

/** A namespace contributes the names of its tools; a tool without a name is listed by its type. */
function namesOf(value: unknown): string[] {
  const tool = fieldsOf(value);
  if (tool['type'] === 'namespace') return listOf(tool['tools']).flatMap(namesOf);
  const name = textOrUndefined(tool['name']) ?? textOrUndefined(tool['type']);
  return name === undefined ? [] : [name];
}

function parametersOf(request: Fields, features: readonly string[]): (readonly string[])[] {
  const sent = Object.entries(PARAMETERS).flatMap(([field, names]) => {
    const value = request[field];
    return value === undefined || value === null || (Array.isArray(value) && value.length === 0) ? [] : [names];
  });
  if (textOrUndefined(fieldsOf(request['text'])['verbosity']) !== undefined) sent.push(['verbosity']);
  for (const name of features) if (name !== 'tools') sent.push([name]);
  return sent;
}

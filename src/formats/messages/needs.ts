/** What a messages request requires of an endpoint, in terms of the catalog's `supported_parameters`. */
import { type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { Needs } from '../conversation/format.ts';
import { onlyServerTools } from '../server-tools/index.ts';

/** Request members and their names in the catalog. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  temperature: ['temperature'],
  top_p: ['top_p'],
  top_k: ['top_k'],
  max_tokens: ['max_tokens', 'max_completion_tokens'],
  stop_sequences: ['stop'],
  tools: ['tools'],
  tool_choice: ['tool_choice'],
};

/** Returns undefined for text only. `inputs` was collected while counting media. */
export function needsOf(request: Fields, inputs: readonly string[], everyParameter: boolean): Needs | undefined {
  const features: string[] = [];
  if (listOf(request['tools']).length > 0) features.push('tools');
  if (fieldsOf(fieldsOf(request['output_config'])['format'])['type'] === 'json_schema') {
    features.push('structured_outputs');
  }
  const parameters = everyParameter ? parametersOf(request, features) : [];
  if (inputs.length + features.length + parameters.length === 0) return undefined;
  if (!features.includes('tools')) return { inputs, outputs: [], features, parameters };
  const list = listOf(request['tools']);
  const tools = list.flatMap((tool) => textOrUndefined(fieldsOf(tool)['name']) ?? []);
  return { inputs, outputs: [], features, parameters, tools, serverTools: onlyServerTools(list, 'messages') };
}

function parametersOf(request: Fields, features: readonly string[]): (readonly string[])[] {
  const sent = Object.entries(PARAMETERS).flatMap(([field, names]) => {
    const value = request[field];
    return value === undefined || value === null || (Array.isArray(value) && value.length === 0) ? [] : [names];
  });
  if (features.includes('structured_outputs')) sent.push(['structured_outputs']);
  const thinking = fieldsOf(request['thinking'])['type'];
  const thinks = thinking === 'enabled' || thinking === 'adaptive';
  if (thinks || typeof fieldsOf(request['output_config'])['effort'] === 'string') sent.push(['reasoning']);
  return sent;
}

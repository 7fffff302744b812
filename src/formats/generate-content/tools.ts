/** Function declarations and their configuration as tools of chat. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { listMember, member, objectMember } from './names.ts';

const MODES = ['AUTO', 'ANY', 'NONE', 'VALIDATED'];

export function toolMembers(tools: readonly unknown[], config: Fields): Fields {
  const functions = tools.flatMap((tool, index) => functionsOf(fieldsOf(tool), `tools[${index}]`));
  const at = 'toolConfig.functionCallingConfig';
  const calling = objectMember(config, 'functionCallingConfig', at);
  const mode = calling['mode'] ?? 'AUTO';
  if (typeof mode !== 'string' || !MODES.includes(mode)) {
    throw invalidField(`${at}.mode`, `must be one of ${MODES.join(', ')}`);
  }
  const allowed = listMember(calling, 'allowedFunctionNames', `${at}.allowedFunctionNames`).map(textOf);
  const known = new Set(functions.map(nameOf));
  const unknown = allowed.find((name) => !known.has(name));
  if (unknown !== undefined) throw invalidField(`${at}.allowedFunctionNames`, 'names a function that is not declared');
  if (functions.length === 0) return {};
  const offered = allowed.length === 0 ? functions : functions.filter((each) => allowed.includes(nameOf(each)));
  return { tools: offered, ...choiceOf(mode, allowed) };
}

function nameOf(tool: Fields): string {
  return textOf(fieldsOf(tool['function'])['name']);
}

function choiceOf(mode: string, allowed: readonly string[]): Fields {
  if (mode === 'NONE') return { tool_choice: 'none' };
  if (mode !== 'ANY') return {};
  return { tool_choice: allowed.length === 1 ? { type: 'function', function: { name: allowed[0] } } : 'required' };
}

function functionsOf(tool: Fields, at: string): Fields[] {
  for (const name of Object.keys(tool)) {
    if (member({ [name]: 1 }, 'functionDeclarations') === undefined)
      throw invalidField(`${at}.${name}`, 'is not supported');
  }
  return listMember(tool, 'functionDeclarations', `${at}.functionDeclarations`).map((value, index) => {
    const declaration = fieldsOf(value);
    const path = `${at}.functionDeclarations[${index}]`;
    const name = textOf(declaration['name']);
    if (name === '') throw invalidField(`${path}.name`, 'must be a non-empty string');
    const { description } = declaration;
    const json = member(declaration, 'parametersJsonSchema') ?? undefined;
    const parameters = json ?? jsonSchemaOf(declaration['parameters'] ?? undefined);
    if (parameters !== undefined && !isFields(parameters)) {
      throw invalidField(`${path}.${json === undefined ? 'parameters' : 'parametersJsonSchema'}`, 'must be an object');
    }
    return {
      type: 'function',
      function: {
        name,
        ...(typeof description === 'string' && { description }),
        parameters: parameters ?? { type: 'object', properties: {} },
      },
    };
  });
}

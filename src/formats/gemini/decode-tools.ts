/** Tools of a client's request: function declarations, tools that run at Google, and server tools of the gateway. */
import { invalidField } from '../../base/errors.ts';
import type { FunctionTool, Tool, ToolChoice } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, nonEmptyText, textOf } from '../conversation/fields.ts';
import { withoutNullKeywords } from '../conversation/plain-schema.ts';
import { jsonSchemaOf } from './google-schema.ts';
import { listMember, member, objectMember, otherMembers } from './names.ts';

const MODES = ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'];
/** Wider than in the other formats, as at Google. */
const NAME = /^[a-zA-Z0-9_.:-]{1,128}$/;
const READ = new Set(['name', 'description', 'parameters', 'parametersJsonSchema']);

interface DecodedTools {
  tools?: Tool[];
  toolChoice?: ToolChoice;
}

/** @throws GatewayError 400 with the path of the invalid field */
export function decodeTools(given: readonly unknown[], config: Fields): DecodedTools {
  const names = new Set<string>();
  const tools = given.flatMap((value, index) => {
    const at = `tools[${index}]`;
    if (!isFields(value)) throw invalidField(at, 'must be an object');
    return toolsOf(value, at, names);
  });
  const at = 'toolConfig.functionCallingConfig';
  const calling = objectMember(config, 'functionCallingConfig', at);
  const mode = calling['mode'] ?? 'AUTO';
  if (typeof mode !== 'string' || !MODES.includes(mode)) {
    throw invalidField(`${at}.mode`, `must be one of ${MODES.join(', ')}`);
  }
  const allowed = listMember(calling, 'allowedFunctionNames', `${at}.allowedFunctionNames`).map(textOf);
  if (allowed.some((name) => !names.has(name))) {
    throw invalidField(`${at}.allowedFunctionNames`, 'names a function that is not declared');
  }
  // As Google does; it would refuse AUTO and NONE too, but they force nothing.
  if (mode === 'ANY' && names.size === 0 && !given.some(isOwnTool)) {
    throw invalidField(`${at}.mode`, 'forces a function call, but the request declares no function');
  }
  if (tools.length === 0) return {};
  const isOffered = (tool: Tool) => tool.type !== 'function' || allowed.length === 0 || allowed.includes(tool.name);
  const toolChoice = choiceOf(mode, allowed);
  return { tools: tools.filter(isOffered), ...(toolChoice && { toolChoice }) };
}

function choiceOf(mode: string, allowed: readonly string[]): ToolChoice | undefined {
  if (mode === 'NONE') return { mode: 'none' };
  if (mode !== 'ANY') return undefined;
  return allowed.length === 1 ? { mode: 'tool', name: allowed[0]! } : { mode: 'required' };
}

/** The gateway's server tools have a type, as in the other formats. */
function isOwnTool(tool: unknown): boolean {
  return nonEmptyText(fieldsOf(tool)['type']) !== undefined;
}

/** One entry may hold several tools, each under its own name. @param names of all functions so far */
function toolsOf(tool: Fields, at: string, names: Set<string>): Tool[] {
  if (isOwnTool(tool)) return [{ type: 'opaque', origin: 'gemini', value: tool }];
  return Object.entries(tool).flatMap(([name, value]): Tool[] => {
    if (member({ [name]: value }, 'functionDeclarations') !== undefined) {
      return listMember(tool, 'functionDeclarations', `${at}.functionDeclarations`).map((each, index) =>
        decodeFunction(each, `${at}.functionDeclarations[${index}]`, names),
      );
    }
    return value === null ? [] : [{ type: 'opaque', origin: 'gemini', value: { [name]: value } }];
  });
}

function decodeFunction(declaration: unknown, at: string, names: Set<string>): FunctionTool {
  if (!isFields(declaration)) throw invalidField(at, 'must be an object');
  const { name, description } = declaration;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalidField(`${at}.name`, 'must be 1 to 128 characters of a-z, A-Z, 0-9, _, ., : and -');
  }
  if (names.has(name)) throw invalidField(`${at}.name`, 'must differ from the names of the other functions');
  names.add(name);
  const json = member(declaration, 'parametersJsonSchema');
  const given = json ?? declaration['parameters'] ?? undefined;
  if (given !== undefined && !isFields(given)) {
    throw invalidField(`${at}.${json === undefined ? 'parameters' : 'parametersJsonSchema'}`, 'must be an object');
  }
  const extras = otherMembers(declaration, READ);
  return {
    type: 'function',
    name,
    ...(typeof description === 'string' && { description }),
    ...(given !== undefined && { parameters: withoutNullKeywords(json ?? jsonSchemaOf(given)) }),
    ...(extras && { extras: { gemini: extras } }),
  };
}

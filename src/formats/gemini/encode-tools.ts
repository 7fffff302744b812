/** Encodes function declarations, the service's own tools, and the tool choice. */
import type { Conversation, FunctionTool, Tool, ToolChoice } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOrUndefined } from '../conversation/fields.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import { checkUniqueNames } from '../conversation/unique-names.ts';
import { geminiSchema } from './json-schema.ts';

/** Tools that the service runs itself, by their member name in a tool object. */
const OWN_TOOLS = new Set([
  'googleSearch',
  'googleSearchRetrieval',
  'codeExecution',
  'urlContext',
  'googleMaps',
  'fileSearch',
  'enterpriseWebSearch',
  'retrieval',
  'computerUse',
]);

interface EncodedTools {
  tools?: Fields[];
  toolConfig?: Fields;
}

export function encodeTools(conversation: Conversation, third: boolean, losses: Losses): EncodedTools {
  const declarations: Fields[] = [];
  const own: Fields[] = [];
  checkUniqueNames(conversation.tools ?? []);
  for (const tool of conversation.tools ?? []) {
    if (tool.type === 'function') declarations.push(encodeFunction(tool, losses));
    else own.push(ownTool(tool));
  }
  if (conversation.webSearch !== undefined) {
    if (Object.keys(fieldsOf(conversation.webSearch)).length > 0) {
      losses.drop('web_search_options', 'the provider has no search options');
    }
    own.push({ googleSearch: {} });
  }
  if (own.length > 0 && declarations.length > 0 && !third) {
    throw new Uncarried('tools', 'this model cannot combine functions with built-in tools');
  }
  const encoded: EncodedTools = {};
  if (declarations.length > 0) own.push({ functionDeclarations: declarations });
  if (own.length > 0) encoded.tools = own;
  const config = declarations.length === 0 ? undefined : encodeChoice(conversation);
  const mixed = own.length > 1 && declarations.length > 0;
  if (config !== undefined || mixed) {
    encoded.toolConfig = {
      ...(config !== undefined && { functionCallingConfig: config }),
      ...(mixed && { includeServerSideToolInvocations: true }),
    };
  }
  return encoded;
}

function encodeFunction(tool: FunctionTool, losses: Losses): Fields {
  const declaration: Fields = { name: tool.name };
  if (tool.description !== undefined) declaration['description'] = tool.description;
  const schema = fieldsOf(tool.parameters);
  // The service rejects an object schema without properties, so a function without parameters has no schema.
  const empty = Object.keys(fieldsOf(schema['properties'])).length === 0 && !isFields(schema['additionalProperties']);
  const composed = ['$ref', 'anyOf', 'oneOf', 'allOf'].some((word) => schema[word] !== undefined);
  if (empty && !composed) return declaration;
  const whole = schema['type'] === undefined ? { type: 'object', ...schema } : schema;
  declaration['parametersJsonSchema'] = geminiSchema(whole, `parameters of the tool ${tool.name}`, losses);
  return declaration;
}

/**
 * A tool of the service: `{"type": "google_search", ...settings}`, or the service's own spelling, `{"googleSearch":
 * {}}`.
 */
function ownTool(tool: Exclude<Tool, FunctionTool>): Fields {
  const { type, ...settings } = fieldsOf(tool.value);
  const kind = textOrUndefined(type) ?? '';
  const named = kind.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  if (OWN_TOOLS.has(named)) return { [named]: fieldsOf(settings[named] ?? settings) };
  const [name, ...others] = Object.keys(settings);
  if (type === undefined && name !== undefined && others.length === 0 && OWN_TOOLS.has(name)) return settings;
  throw new Uncarried(`tools of type ${kind || tool.origin}`, 'only the format they came from has them');
}

/** The calling mode; absent if the client left the choice to the model and no function is strict. */
function encodeChoice({ tools, toolChoice }: Conversation): Fields | undefined {
  const strict = tools?.some((tool) => tool.type === 'function' && tool.strict === true);
  switch (toolChoice?.mode) {
    case undefined:
      return strict ? { mode: 'VALIDATED' } : undefined;
    case 'auto':
      return { mode: strict ? 'VALIDATED' : 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'tool':
      return { mode: 'ANY', allowedFunctionNames: [toolChoice.name] };
    case 'opaque':
      return allowedTools(toolChoice);
  }
}

/** Chat's `{type: 'allowed_tools'}`, for functions. */
function allowedTools(choice: Extract<ToolChoice, { mode: 'opaque' }>): Fields {
  const value = fieldsOf(choice.value);
  const allowed = fieldsOf(value['allowed_tools'] ?? value);
  const names = listOf(allowed['tools']).map((entry) => {
    const { name, function: named } = fieldsOf(entry);
    return textOrUndefined(name) ?? textOrUndefined(fieldsOf(named)['name']);
  });
  if (value['type'] !== 'allowed_tools' || names.length === 0 || names.includes(undefined)) {
    throw new Uncarried('tool_choice', 'only the format it came from can express it');
  }
  return { mode: allowed['mode'] === 'required' ? 'ANY' : 'VALIDATED', allowedFunctionNames: names };
}

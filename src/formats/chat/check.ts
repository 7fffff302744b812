/**
 * Validates what a schema cannot express and rejects unsupported features: a requested feature is never silently
 * ignored. Every error names the field.
 */
import { invalidField } from '../../base/errors.ts';
import { WIRE_ALIAS, WIRE_NAME } from '../../base/namespace.ts';
import { checkPreferences } from '../conversation/preferences.ts';
import { checkDeferral, type DeclaredTool } from '../deferred/index.ts';
import { checkMessage } from './check-message.ts';
import { type JsonObject, list, object, someText, text } from './read.ts';

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Longer than most services accept: such names are shortened (formats/conversation/short-names.ts). */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const LONGEST_METADATA_KEY = 64;

export function check(value: unknown): void {
  const body = object(value);
  if (body === undefined) throw invalidField('', 'must be a JSON object');
  refuseUnbuilt(body);
  checkPreferences(body['provider']);
  checkModels(body);
  checkReasoning(body);
  checkLimits(body);
  list(body['tools']).forEach((tool, index) => void checkTool(object(tool) ?? {}, `tools[${index}]`));
  checkToolChoice(body['tool_choice']);
  checkDeferral(body, declaredTools(body), someText(object(object(body['tool_choice'])?.['function'])?.['name']));
  list(body['messages']).forEach((message, index) => void checkMessage(object(message) ?? {}, `messages[${index}]`));
}

function unbuilt(path: string): Error {
  return invalidField(path, 'requests a feature that this gateway does not support');
}

/** Rejects members of unsupported features; empty or disabled values pass. */
function refuseUnbuilt(body: JsonObject): void {
  list(body['plugins']).forEach((plugin, index) => {
    const { id, enabled } = object(plugin) ?? {};
    if (enabled !== false)
      throw invalidField(
        `plugins[${index}]`,
        `requests the plugin ${JSON.stringify(id)}, which this gateway does not support`,
      );
  });
  for (const field of ['stop_server_tools_when', 'transforms', 'preset']) {
    const value = body[field];
    if (value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)) throw unbuilt(field);
  }
}

function checkModels(body: JsonObject): void {
  const named: [string, unknown][] = [['model', body['model']]];
  list(body['models']).forEach((model, index) => void named.push([`models[${index}]`, model]));
  for (const [path, model] of named) {
    if (text(model).includes('@preset/')) throw unbuilt(path);
    if (typeof model === 'string' && model.trim() === '') throw invalidField(path, 'must not be empty');
  }
}

function checkReasoning(body: JsonObject): void {
  const reasoning = object(body['reasoning']) ?? {};
  const effort = reasoning['effort'] ?? undefined;
  const shorthand = body['reasoning_effort'] ?? undefined;
  if (effort !== undefined && shorthand !== undefined && effort !== shorthand) {
    throw invalidField('reasoning_effort', `must not differ from reasoning.effort ('${shorthand}' and '${effort}')`);
  }
  if (typeof reasoning['max_tokens'] === 'number' && (effort ?? shorthand) !== undefined) {
    throw invalidField('reasoning.max_tokens', 'cannot be combined with an effort');
  }
  if (reasoning['enabled'] === false && effort !== undefined && effort !== 'none') {
    throw invalidField('reasoning.enabled', 'cannot be false when an effort is given');
  }
}

function checkLimits(body: JsonObject): void {
  if (typeof body['top_logprobs'] === 'number' && body['logprobs'] !== true) {
    throw invalidField('top_logprobs', 'requires logprobs: true');
  }
  for (const key of Object.keys(object(body['metadata']) ?? {})) {
    if (key.length > LONGEST_METADATA_KEY) {
      throw invalidField('metadata', `has a key longer than ${LONGEST_METADATA_KEY} characters`);
    }
  }
  const format = object(body['response_format']);
  if (format?.['type'] === 'json_schema' && format['json_schema'] === undefined) {
    throw invalidField('response_format.json_schema', 'is missing');
  }
  const name = object(format?.['json_schema'])?.['name'];
  if (name !== undefined && !NAME.test(text(name))) {
    throw invalidField('response_format.json_schema.name', 'must be 1 to 64 characters of a-z, A-Z, 0-9, _ and -');
  }
  if (format?.['type'] === 'grammar' && someText(format['grammar']) === undefined) {
    throw invalidField('response_format.grammar', 'is missing');
  }
}

/**
 * Tools that a gateway would run itself: those with the gateway's own name or its alias as prefix, and the web search
 * shorthands.
 */
function isServerTool(type: string): boolean {
  return (
    type.startsWith(`${WIRE_NAME}:`) ||
    type.startsWith(`${WIRE_ALIAS}:`) ||
    /^web_search(_preview)?(_\d{4}_\d\d_\d\d)?$/.test(type)
  );
}

function checkTool(tool: JsonObject, path: string): void {
  const type = text(tool['type']);
  if (isServerTool(type)) throw unbuilt(`${path}.type`);
  if (type !== 'function') return;
  const definition = object(tool['function']);
  if (definition === undefined) throw invalidField(`${path}.function`, 'is missing');
  if (!TOOL_NAME.test(text(definition['name']))) {
    throw invalidField(`${path}.function.name`, 'must be 1 to 128 characters of a-z, A-Z, 0-9, _ and -');
  }
}

function declaredTools(body: JsonObject): DeclaredTool[] {
  return list(body['tools']).map((value, index) => {
    const tool = object(value) ?? {};
    const name = someText(object(tool['function'])?.['name']);
    return { path: `tools[${index}]`, name, deferred: tool['defer_loading'] === true };
  });
}

/** Unknown values are rejected instead of falling back to a default (agentscope-ai/agentscope-java#2221). */
function checkToolChoice(choice: unknown): void {
  if (choice === undefined || choice === null) return;
  if (typeof choice === 'string') {
    if (choice === 'none' || choice === 'auto' || choice === 'required') return;
    throw invalidField('tool_choice', "must be 'none', 'auto', 'required' or an object that names a tool");
  }
  const value = object(choice) ?? {};
  const type = text(value['type']);
  if (isServerTool(type)) throw unbuilt('tool_choice.type');
  if (type === 'allowed_tools') return;
  if (type !== 'function' && type !== 'custom') {
    throw invalidField('tool_choice.type', "must be 'function', 'custom' or 'allowed_tools'");
  }
  if (someText(object(value[type])?.['name']) === undefined)
    throw invalidField(`tool_choice.${type}.name`, 'is missing');
}

/**
 * Validates the tools of a request and the choice among them (docs/guides/errors.md, "Requests that contradict themselves").
 *
 * Two functions with the same name are accepted, as OpenAI does. Upstreams of the messages and Gemini formats refuse them, so
 * their encoders do. A choice that forces nothing (`auto`, `none`) may come without tools, because clients send it with every
 * request.
 */
import { invalidField } from '../../base/errors.ts';
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import { asksForDeferral } from '../adapters/deferred-tools/index.ts';
import {
  type Fields,
  fieldsOf,
  fieldsOrUndefined,
  isPresent,
  listOf,
  nonEmptyText,
  textOf,
} from '../conversation/fields.ts';
import { checkToolName, noSuchTool, nothingToChoose } from '../conversation/request-rules.ts';

/** @param isPart other tools are added later */
export function checkTools(body: Fields, isPart: boolean): void {
  listOf(body['tools']).forEach((tool, index) => void checkTool(fieldsOf(tool), `tools[${index}]`));
  checkFunctions(body['functions']);
  const { tool_choice: choice, function_call: older } = body;
  if (!isForcing(choice) && !isForcing(older)) return;
  const isOpen = isPart || mayHaveOthers(body);
  if (isForcing(choice)) checkToolChoice(choice, body, isOpen);
  if (isForcing(older)) checkFunctionCall(older, body, isOpen);
}

/** True also for invalid choices, which the checks then refuse. */
function isForcing(choice: unknown): boolean {
  return choice !== undefined && choice !== null && choice !== 'none' && choice !== 'auto';
}

function checkTool(tool: Fields, path: string): void {
  if (tool['type'] !== 'function') return;
  const definition = fieldsOrUndefined(tool['function']);
  if (definition === undefined) throw invalidField(`${path}.function`, 'is missing');
  checkToolName(definition['name'], `${path}.function.name`);
}

/** The member that `tools` has replaced. */
function checkFunctions(functions: unknown): void {
  if (functions === undefined || functions === null) return;
  if (!Array.isArray(functions)) throw invalidField('functions', 'must be a list');
  functions.forEach((one, index) => void checkToolName(fieldsOf(one)['name'], `functions[${index}].name`));
}

/**
 * Unknown values are rejected instead of falling back to a default (agentscope-ai/agentscope-java#2221).
 * @param isOpen tools that are not in the body may be chosen
 */
function checkToolChoice(choice: unknown, body: Fields, isOpen: boolean): void {
  if (choice === 'required') checkAnyTool(body, isOpen);
  else if (typeof choice !== 'string') checkChosen(fieldsOf(choice), body, isOpen);
  else throw invalidField('tool_choice', "must be 'none', 'auto', 'required' or an object that names a tool");
}

function checkChosen(choice: Fields, body: Fields, isOpen: boolean): void {
  const type = textOf(choice['type']);
  if (toWireName(type).startsWith(`${WIRE_NAME}:`)) checkAnyTool(body, isOpen);
  else if (type === 'allowed_tools') {
    listOf(fieldsOf(choice[type])['tools']).forEach((tool, index) => {
      if (!isOpen) checkNamed(fieldsOf(tool), `tool_choice.allowed_tools.tools[${index}]`, body);
    });
  } else if (type === 'function' || type === 'custom') {
    if (nonEmptyText(fieldsOf(choice[type])['name']) === undefined) {
      throw invalidField(`tool_choice.${type}.name`, 'is missing');
    }
    if (!isOpen) checkNamed(choice, 'tool_choice', body);
  } else {
    throw invalidField(
      'tool_choice.type',
      "must be 'function', 'custom', 'allowed_tools' or the type of a server tool",
    );
  }
}

function checkFunctionCall(choice: unknown, body: Fields, isOpen: boolean): void {
  const { name } = fieldsOf(choice);
  if (nonEmptyText(name) === undefined) {
    throw invalidField('function_call', "must be 'none', 'auto' or an object that names a function");
  }
  if (!isOpen) checkName(name, 'function_call.name', body);
}

/** A named choice of a function or custom tool. */
function checkNamed(choice: Fields, path: string, body: Fields): void {
  const type = textOf(choice['type']);
  if (type !== 'function' && type !== 'custom') return;
  checkName(fieldsOf(choice[type])['name'], `${path}.${type}.name`, body);
}

function checkName(name: unknown, path: string, body: Fields): void {
  const names = listOf(body['functions']).map((one) => fieldsOf(one)['name']);
  for (const value of listOf(body['tools'])) {
    const tool = fieldsOf(value);
    // A server tool, or one of a vendor, may have functions that only it knows.
    if (tool['type'] !== 'function' && tool['type'] !== 'custom') return;
    names.push(fieldsOf(tool[tool['type']])['name']);
  }
  if (!names.includes(name)) throw noSuchTool(path);
}

function checkAnyTool(body: Fields, isOpen: boolean): void {
  if (isOpen || listOf(body['tools']).length + listOf(body['functions']).length > 0) return;
  throw nothingToChoose();
}

/** Whether the gateway or the upstream adds tools to those of the request. */
function mayHaveOthers(body: Fields): boolean {
  return isPresent(body['plugins']) || isPresent(body['web_search_options']) || asksForDeferral(body);
}

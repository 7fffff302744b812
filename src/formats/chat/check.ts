/**
 * Validates what a schema cannot express and rejects unsupported features: a requested feature is never silently
 * ignored. Every error names the field.
 */
import { invalidField } from '../../base/errors.ts';
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import { checkDeferral, type DeclaredTool } from '../adapters/deferred-tools/index.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import { checkPreferences } from '../conversation/preferences.ts';
import {
  checkMetadata,
  checkModels,
  checkReasoningObject,
  checkSchemaName,
  checkToolName,
} from '../conversation/request-rules.ts';
import { type FeatureRules, refuseUnbuilt } from '../server-tools/index.ts';
import { checkMessage } from './check-message.ts';

/** No upstream of this format runs tools of vendors' types itself. */
const FEATURES: FeatureRules = { shorthands: true, unbuilt: ['transforms'] };

export function check(value: unknown): void {
  const body = fieldsOrUndefined(value);
  if (body === undefined) throw invalidField('', 'must be a JSON object');
  refuseUnbuilt(body, FEATURES);
  checkPreferences(body['provider']);
  checkModels(body);
  checkReasoning(body);
  checkLimits(body);
  listOf(body['tools']).forEach((tool, index) => void checkTool(fieldsOf(tool), `tools[${index}]`));
  checkToolChoice(body['tool_choice']);
  checkDeferral(
    body,
    declaredTools(body),
    nonEmptyText(fieldsOrUndefined(fieldsOrUndefined(body['tool_choice'])?.['function'])?.['name']),
  );
  listOf(body['messages']).forEach((message, index) => void checkMessage(fieldsOf(message), `messages[${index}]`));
}

function checkReasoning(body: Fields): void {
  const reasoning = fieldsOf(body['reasoning']);
  const effort = reasoning['effort'] ?? undefined;
  const shorthand = body['reasoning_effort'] ?? undefined;
  if (effort !== undefined && shorthand !== undefined && effort !== shorthand) {
    throw invalidField('reasoning_effort', `must not differ from reasoning.effort ('${shorthand}' and '${effort}')`);
  }
  checkReasoningObject(reasoning, effort ?? shorthand);
}

function checkLimits(body: Fields): void {
  if (typeof body['top_logprobs'] === 'number' && body['logprobs'] !== true) {
    throw invalidField('top_logprobs', 'requires logprobs: true');
  }
  checkMetadata(body);
  const format = fieldsOrUndefined(body['response_format']);
  if (format?.['type'] === 'json_schema' && format['json_schema'] === undefined) {
    throw invalidField('response_format.json_schema', 'is missing');
  }
  const name = fieldsOrUndefined(format?.['json_schema'])?.['name'];
  if (name !== undefined) checkSchemaName(name, 'response_format.json_schema.name');
  if (format?.['type'] === 'grammar' && nonEmptyText(format['grammar']) === undefined) {
    throw invalidField('response_format.grammar', 'is missing');
  }
}

function checkTool(tool: Fields, path: string): void {
  if (tool['type'] !== 'function') return;
  const definition = fieldsOrUndefined(tool['function']);
  if (definition === undefined) throw invalidField(`${path}.function`, 'is missing');
  checkToolName(definition['name'], `${path}.function.name`);
}

function declaredTools(body: Fields): DeclaredTool[] {
  return listOf(body['tools']).map((value, index) => {
    const tool = fieldsOf(value);
    const name = nonEmptyText(fieldsOrUndefined(tool['function'])?.['name']);
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
  const value = fieldsOf(choice);
  const type = textOf(value['type']);
  if (type === 'allowed_tools' || toWireName(type).startsWith(`${WIRE_NAME}:`)) return;
  if (type !== 'function' && type !== 'custom') {
    throw invalidField(
      'tool_choice.type',
      "must be 'function', 'custom', 'allowed_tools' or the type of a server tool",
    );
  }
  if (nonEmptyText(fieldsOrUndefined(value[type])?.['name']) === undefined)
    throw invalidField(`tool_choice.${type}.name`, 'is missing');
}

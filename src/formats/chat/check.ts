/**
 * Validates what a schema cannot express and rejects unsupported features: a requested feature is never silently
 * ignored. Every error names the field.
 */
import { invalidField } from '../../base/errors.ts';
import { checkDeferral, type DeclaredTool } from '../adapters/deferred-tools/index.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText } from '../conversation/fields.ts';
import { checkPreferences } from '../conversation/preferences.ts';
import { checkMetadata, checkModels, checkReasoningObject, checkSchemaName } from '../conversation/request-rules.ts';
import { type FeatureRules, refuseUnbuilt } from '../server-tools/index.ts';
import { checkMessage } from './check-message.ts';
import { checkTools } from './check-tools.ts';

/** No upstream of this format runs tools of vendors' types itself. */
const FEATURES: FeatureRules = { shorthands: true, unbuilt: [] };

export function check(value: unknown, isPart = false): void {
  const body = fieldsOrUndefined(value);
  if (body === undefined) throw invalidField('', 'must be a JSON object');
  refuseUnbuilt(body, FEATURES);
  checkPreferences(body['provider']);
  checkModels(body);
  checkReasoning(body);
  checkLimits(body);
  checkTools(body, isPart);
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

function declaredTools(body: Fields): DeclaredTool[] {
  return listOf(body['tools']).map((value, index) => {
    const tool = fieldsOf(value);
    const name = nonEmptyText(fieldsOrUndefined(tool['function'])?.['name']);
    return { path: `tools[${index}]`, name, deferred: tool['defer_loading'] === true };
  });
}

/** Adapts request parameters to a service's dialect, for both translated and relayed requests. */

import { type Fields, fieldsOrUndefined, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { type Losses, Uncarried } from '../conversation/losses.ts';
import type { ChatDialect } from './dialect.ts';

/** Access to a request body, independent of its representation. */
interface Parameters {
  has(key: string): boolean;
  read(key: string): unknown;
}

/** @returns the members to change; undefined removes one. @throws Uncarried for an unsupported feature */
export function adaptParameters(
  request: Parameters,
  target: Pick<EncodeTarget, 'dialect' | 'model'>,
  losses: Losses,
): Map<string, unknown> {
  const dialect = target.dialect.chat ?? {};
  const changes = new Map<string, unknown>();
  for (const [name, theirs] of Object.entries(dialect.renames ?? {})) {
    if (!request.has(name)) continue;
    changes.set(name, undefined);
    if (!request.has(theirs)) changes.set(theirs, request.read(name));
  }
  adaptTools(request, dialect, changes);
  adaptOutput(request, dialect, changes);
  for (const parameter of refused(dialect, target.model)) {
    if (!request.has(parameter) || changes.has(parameter)) continue;
    changes.set(parameter, undefined);
    losses.drop(parameter, 'the upstream does not accept it');
  }
  const tier = nonEmptyText(request.read('service_tier'));
  if (tier !== undefined && dialect.serviceTiers?.includes(tier) === false) {
    changes.set('service_tier', undefined);
    losses.drop('service_tier', `the upstream has no tier ${tier}`);
  }
  return changes;
}

function refused(dialect: ChatDialect, model: string): string[] {
  const some = (dialect.refusesFor ?? []).filter(({ models }) => models.test(model));
  return [...(dialect.refuses ?? []), ...some.flatMap(({ parameters }) => parameters)];
}

function adaptTools(request: Parameters, dialect: ChatDialect, changes: Map<string, unknown>): void {
  if (dialect.lacks?.includes('tools') && listOf(request.read('tools')).length > 0) {
    if (request.read('tool_choice') !== 'none') throw new Uncarried('tools', 'the upstream does not support tools');
    changes.set('tools', undefined);
    changes.set('tool_choice', undefined);
  }
  if (!dialect.toolChoiceWords) return;
  const name = nonEmptyText(fieldsOrUndefined(fieldsOrUndefined(request.read('tool_choice'))?.['function'])?.['name']);
  if (name === undefined) return;
  const only = listOf(request.read('tools')).filter(
    (tool) => fieldsOrUndefined(fieldsOrUndefined(tool)?.['function'])?.['name'] === name,
  );
  if (only.length === 0) return;
  changes.set('tool_choice', 'required');
  changes.set('tools', only);
}

function adaptGrammar(grammar: unknown, dialect: ChatDialect, changes: Map<string, unknown>): void {
  if (dialect.grammar === undefined) throw new Uncarried('response_format', 'the upstream does not support grammars');
  if (dialect.grammar === 'response_format') return;
  changes.set('response_format', undefined);
  changes.set(dialect.grammar, dialect.grammar === 'grammar' ? grammar : { grammar });
}

const ANY_OBJECT: Fields = {
  type: 'json_schema',
  json_schema: { name: 'answer', schema: { type: 'object', additionalProperties: true } },
};

function adaptOutput(request: Parameters, dialect: ChatDialect, changes: Map<string, unknown>): void {
  if (!request.has('response_format')) return;
  const format = fieldsOrUndefined(request.read('response_format'));
  const type = format?.['type'];
  if (type === 'grammar') adaptGrammar(format!['grammar'], dialect, changes);
  if (type === 'python' && !dialect.python) {
    throw new Uncarried('response_format', 'the upstream does not support the type python');
  }
  if (type === 'json_schema' && dialect.lacks?.includes('json_schema')) {
    throw new Uncarried('response_format', 'the upstream does not support JSON schemas');
  }
  if (type === 'json_object' && dialect.jsonBySchema) changes.set('response_format', ANY_OBJECT);
}

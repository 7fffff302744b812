/**
 * The request member `deferred_tools`, the same in all served formats: tools marked with `defer_loading` are shown to
 * the model only after it has searched for them.
 */
import { Type } from 'typebox';
import { GatewayError, invalidField } from '../../../base/errors.ts';
import { CALL_TOOL, type DeferredSearch, SEARCH_TOOL } from '../../conversation/deferred-search.ts';
import { type Fields, isFields, textOf } from '../../conversation/fields.ts';
import { optional, word } from '../../conversation/loose-schema.ts';

const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 100;

export const DeferredToolsSchema = Type.Object(
  {
    protocol: word(['v1']),
    profile: word(['portable']),
    validation: word(['runtime']),
    search: Type.Object({
      type: word(['bm25', 'regex', 'custom']),
      max_results: optional(
        Type.Integer({ minimum: 1, maximum: MAX_RESULTS, description: `Default ${DEFAULT_RESULTS}` }),
      ),
      tool_id: optional(Type.String({ description: "With `custom`: the client's tool that runs the search" })),
      result_key: optional(
        Type.String({ description: 'With `custom`: the member of its result that lists the tools' }),
      ),
    }),
  },
  {
    $id: 'DeferredTools',
    description: 'Tools with `defer_loading` are shown to the model only after it has searched for them',
  },
);

/** What the protocol needs to know of a declared tool. */
export interface DeclaredTool {
  path: string;
  /** Undefined for tools without a function name. */
  name: string | undefined;
  deferred: boolean;
}

/** Null and absence ask for nothing. */
export function asksForDeferral(body: Fields): boolean {
  return body['deferred_tools'] !== undefined && body['deferred_tools'] !== null;
}

/** @throws GatewayError 400 with the path of the offending member */
export function checkDeferral(body: Fields, tools: readonly DeclaredTool[], chosen: string | undefined): void {
  if (!asksForDeferral(body)) {
    const marked = tools.find(({ deferred }) => deferred);
    if (marked === undefined) return;
    throw invalidField(`${marked.path}.defer_loading`, 'requires deferred_tools');
  }
  const settings = body['deferred_tools'];
  if (!isFields(settings)) throw invalidField('deferred_tools', 'must be an object');
  only(settings, 'protocol', 'v1');
  only(settings, 'profile', 'portable');
  only(settings, 'validation', 'runtime');
  checkSearch(settings['search'], tools);
  if (!tools.some(({ deferred }) => deferred)) throw invalidField('tools', 'must contain a tool with defer_loading');
  checkNames(tools);
  if (chosen !== undefined && tools.some(({ name, deferred }) => deferred && name === chosen)) {
    throw invalidField('tool_choice', `must not name ${chosen}: the model does not see a deferred tool yet`);
  }
}

function only(settings: Fields, field: string, word: string): void {
  if (settings[field] !== word) throw invalidField(`deferred_tools.${field}`, `must be '${word}'`);
}

function checkSearch(search: unknown, tools: readonly DeclaredTool[]): void {
  const path = 'deferred_tools.search';
  if (!isFields(search)) throw invalidField(path, 'must be an object');
  const { type, max_results: maxResults, tool_id: id, result_key: key } = search;
  if (type !== 'bm25' && type !== 'regex' && type !== 'custom') {
    throw invalidField(`${path}.type`, "must be 'bm25', 'regex' or 'custom'");
  }
  if (
    maxResults !== undefined &&
    maxResults !== null &&
    !(Number.isInteger(maxResults) && Number(maxResults) >= 1 && Number(maxResults) <= MAX_RESULTS)
  ) {
    throw invalidField(`${path}.max_results`, `must be an integer from 1 to ${MAX_RESULTS}`);
  }
  if (type !== 'custom') return;
  if (textOf(key) === '') throw invalidField(`${path}.result_key`, 'must name the member that lists the tools');
  const own = tools.find(({ name }) => name !== undefined && name === id);
  if (own === undefined || own.deferred) {
    throw invalidField(`${path}.tool_id`, 'must name a tool of the request that is not deferred');
  }
}

function checkNames(tools: readonly DeclaredTool[]): void {
  const seen = new Set<string>();
  for (const { name, path, deferred } of tools) {
    if (name === undefined) {
      if (deferred) throw invalidField(`${path}.defer_loading`, 'is supported for functions only');
      continue;
    }
    if (name === SEARCH_TOOL || name === CALL_TOOL) {
      throw invalidField(path, `must not have the name ${name}, which deferred_tools reserves`);
    }
    if (seen.has(name)) throw invalidField(path, `must not have the name ${name}, which another tool has`);
    seen.add(name);
  }
}

/** Reads a checked request; undefined when it defers nothing. */
export function readDeferral(body: Fields): DeferredSearch | undefined {
  if (!asksForDeferral(body)) return undefined;
  const { search } = body['deferred_tools'] as { search: Fields };
  const maxResults = typeof search['max_results'] === 'number' ? search['max_results'] : DEFAULT_RESULTS;
  if (search['type'] !== 'custom') return { type: search['type'] === 'regex' ? 'regex' : 'bm25', maxResults };
  return { type: 'custom', tool: textOf(search['tool_id']), resultKey: textOf(search['result_key']), maxResults };
}

/** The error for a history that names a tool missing from the request. */
export function changedCatalogue(name: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `tools: the deferred tool ${name} was found earlier in this conversation and must stay in the request`,
    { path: 'tools' },
  );
}

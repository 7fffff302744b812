/**
 * The request member `deferred_tools`, the same in all served formats: tools marked with `defer_loading` are shown to
 * the model only after it has searched for them.
 */
import { Type } from 'typebox';
import { GatewayError, invalidField } from '../../../base/errors.ts';
import { toWireName, WIRE_NAME } from '../../../base/namespace.ts';
import { CALL_TOOL, type DeferredSearch, SEARCH_TOOL } from '../../conversation/deferred-search.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../conversation/fields.ts';
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

/** The facts of a declared tool that the protocol needs. */
export interface DeclaredTool {
  path: string;
  /** Undefined for tools without a function name. */
  name: string | undefined;
  deferred: boolean;
}

/** By `deferred_tools`, or by the server tool for searches. */
export function asksForDeferral(body: Fields): boolean {
  return settingsOf(body) !== undefined;
}

const SEARCH_TYPE = `${WIRE_NAME}:tool_search`;

/** Whether the tool is the server tool that searches. */
export function isToolSearch(tool: unknown): boolean {
  return toWireName(textOf(fieldsOf(tool)['type'])) === SEARCH_TYPE;
}

/** The server tool `svc:tool_search` is short for a search by words. Null and absence ask for nothing. */
function settingsOf(body: Fields): unknown {
  const settings = body['deferred_tools'] ?? undefined;
  if (settings !== undefined) return settings;
  const tools = listOf(body['tools']);
  const index = tools.findIndex(isToolSearch);
  // Without deferred tools there is nothing to search for.
  if (index === -1 || !tools.some((tool) => fieldsOf(tool)['defer_loading'] === true)) return undefined;
  const { max_results: maxResults } = fieldsOf(fieldsOf(tools[index])['parameters']);
  checkMaxResults(maxResults, `tools[${index}].parameters.max_results`);
  return {
    protocol: 'v1',
    profile: 'portable',
    validation: 'runtime',
    search: { type: 'bm25', ...(maxResults !== undefined && { max_results: maxResults }) },
  };
}

/** @throws GatewayError 400 with the path of the offending member */
export function checkDeferral(body: Fields, tools: readonly DeclaredTool[], chosen: string | undefined): void {
  if (!asksForDeferral(body)) {
    const marked = tools.find(({ deferred }) => deferred);
    if (marked === undefined) return;
    throw invalidField(`${marked.path}.defer_loading`, 'requires deferred_tools or the tool svc:tool_search');
  }
  const settings = settingsOf(body);
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
  checkMaxResults(maxResults, `${path}.max_results`);
  if (type !== 'custom') return;
  if (textOf(key) === '') throw invalidField(`${path}.result_key`, 'must name the member that lists the tools');
  const own = tools.find(({ name }) => name !== undefined && name === id);
  if (own === undefined || own.deferred) {
    throw invalidField(`${path}.tool_id`, 'must name a tool of the request that is not deferred');
  }
}

function checkMaxResults(value: unknown, path: string): void {
  if (value === undefined || value === null) return;
  if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_RESULTS) return;
  throw invalidField(path, `must be an integer from 1 to ${MAX_RESULTS}`);
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
  const settings = settingsOf(body);
  if (settings === undefined) return undefined;
  const { search } = settings as { search: Fields };
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

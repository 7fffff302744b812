/**
 * What an upstream may read with tools of its own while it answers: upper estimates, for reservations, since vendors document
 * no limits.
 */
import type { FormatId } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, isPresent, listOf } from '../conversation/fields.ts';
import type { UpstreamReads } from '../conversation/format.ts';
import { serverToolName } from './refusals.ts';
import { SERVER_TOOLS, type ServerTool } from './server-tool.ts';
import { camelCased } from './uses.ts';

/** What upstreams do at most without `max_uses`, before they pause or answer. */
const USUAL_USES = 10;
/** The pages of one search, the output of one run of code, or the chunks of one search in files. */
const RESULT_TOKENS = 16_384;
/** One fetched page without `max_content_tokens`: Anthropic counts 25,000 tokens for a large one. */
const PAGE_TOKENS = 32_768;

const READING: ReadonlySet<string> = new Set([
  'svc:code_interpreter',
  'svc:file_search',
  'svc:mcp',
  'svc:web_fetch',
  'svc:web_search',
]);
const TOOLS: readonly Reading[] = [
  ...SERVER_TOOLS.filter(({ name }) => READING.has(name)),
  // Searches of one vendor only, for which the gateway has no tool.
  { name: 'svc:web_search', vendorTypes: /^x_search$/, vendorMembers: ['googleMaps'] },
];

type Reading = Pick<ServerTool, 'name' | 'vendorTypes' | 'vendorMembers' | 'member'>;

/** @param name of the server tool with the same purpose, without the prefix */
export function readsOf(name: string, settings: Fields): UpstreamReads {
  const uses = countOf(settings['max_uses']) || USUAL_USES;
  const fetched = countOf(settings['max_content_tokens']) || PAGE_TOKENS;
  return {
    searches: name === 'web_search' ? uses : 0,
    tokens: uses * (name === 'web_fetch' ? fetched : RESULT_TOKENS),
  };
}

/** The sum over the vendors' tools that the request names itself; undefined (the usual case) if it names none. */
export function vendorReads(request: Fields, format: FormatId): UpstreamReads | undefined {
  const { tools } = request;
  const named = (isFields(tools) ? [tools] : listOf(tools)).flatMap((tool) => readsIn(fieldsOf(tool), format));
  for (const tool of TOOLS)
    if (tool.member !== undefined && isPresent(request[tool.member])) named.push(readsAs(tool, {}));
  return named.length === 0 ? undefined : sumOfReads(named);
}

/** @param all at least one */
export function sumOfReads(all: readonly UpstreamReads[]): UpstreamReads {
  return all.reduce((sum, each) => ({ searches: sum.searches + each.searches, tokens: sum.tokens + each.tokens }));
}

function readsIn(tool: Fields, format: FormatId): UpstreamReads[] {
  const { type } = tool;
  if (typeof type === 'string') {
    if (type === 'function' || serverToolName(tool, format) !== undefined) return [];
    const found = TOOLS.find(({ vendorTypes }) => vendorTypes?.test(type));
    return found === undefined ? [] : [readsAs(found, tool)];
  }
  const names = Object.keys(tool).map(camelCased);
  const found = TOOLS.filter(({ vendorMembers }) => vendorMembers?.some((name) => names.includes(name)));
  return found.map((each) => readsAs(each, {}));
}

function readsAs({ name }: Reading, settings: Fields): UpstreamReads {
  return readsOf(name.slice(name.indexOf(':') + 1), settings);
}

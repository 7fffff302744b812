/**
 * Upper estimates of an upstream's work with its own tools while it answers, for reservations. Vendors document no
 * limits.
 */
import type { FormatId } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, isPresent, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { UpstreamWork } from '../conversation/format.ts';
import { serverToolName } from './refusals.ts';
import { SERVER_TOOLS, type ServerTool } from './server-tool.ts';
import { camelCased } from './uses.ts';

/** Calls of a tool without `max_uses` and `max_tool_calls`: upstreams pause or answer before they make more. */
const USUAL_USES = 10;
/** The pages of one search, the output of one run of code, or the chunks of one search in files. */
const RESULT_TOKENS = 16_384;
/** One fetched page without `max_content_tokens`: Anthropic counts 25,000 tokens for a large one. */
const PAGE_TOKENS = 32_768;

const WORKING: ReadonlySet<string> = new Set([
  'svc:code_interpreter',
  'svc:file_search',
  'svc:image_generation',
  'svc:mcp',
  'svc:web_fetch',
  'svc:web_search',
]);
const TOOLS: readonly Working[] = [
  ...SERVER_TOOLS.filter(({ name }) => WORKING.has(name)),
  // Searches of one vendor only, for which the gateway has no tool.
  { name: 'svc:web_search', vendorTypes: /^x_search$/, vendorMembers: ['googleMaps'] },
];

type Working = Pick<ServerTool, 'name' | 'vendorTypes' | 'vendorMembers' | 'member'>;

/**
 * @param name of the server tool with the same purpose, without the prefix
 * @param mostCalls of all tools together
 */
export function workOf(name: string, settings: Fields, mostCalls = Number.POSITIVE_INFINITY): UpstreamWork {
  const uses = Math.min(countOf(settings['max_uses']) || USUAL_USES, mostCalls);
  if (name === 'image_generation') {
    const imageModel = nonEmptyText(settings['model']);
    return { searches: 0, tokens: 0, images: uses, ...(imageModel !== undefined && { imageModel }) };
  }
  const fetched = countOf(settings['max_content_tokens']) || PAGE_TOKENS;
  return {
    searches: name === 'web_search' ? uses : 0,
    tokens: uses * (name === 'web_fetch' ? fetched : RESULT_TOKENS),
    images: 0,
  };
}

/** The sum over the vendors' tools that the request names itself; undefined (the usual case) if it names none. */
export function vendorWork(request: Fields, format: FormatId): UpstreamWork | undefined {
  const { tools } = request;
  // A member of the responses format.
  const mostCalls = countOf(request['max_tool_calls']) || undefined;
  const all = isFields(tools) ? [tools] : listOf(tools);
  const named = all.flatMap((tool) => workIn(fieldsOf(tool), format, mostCalls));
  for (const tool of TOOLS)
    if (tool.member !== undefined && isPresent(request[tool.member])) named.push(workAs(tool, {}));
  return named.length === 0 ? undefined : sumOfWork(named);
}

/** @param all at least one */
export function sumOfWork(all: readonly UpstreamWork[]): UpstreamWork {
  const sum = { ...all[0]! };
  for (const { searches, tokens, images, imageModel = sum.imageModel } of all.slice(1)) {
    sum.searches += searches;
    sum.tokens += tokens;
    sum.images += images;
    if (imageModel !== undefined) sum.imageModel = imageModel;
  }
  return sum;
}

function workIn(tool: Fields, format: FormatId, mostCalls: number | undefined): UpstreamWork[] {
  const { type } = tool;
  if (typeof type === 'string') {
    if (type === 'function' || serverToolName(tool, format) !== undefined) return [];
    const found = TOOLS.find(({ vendorTypes }) => vendorTypes?.test(type));
    return found === undefined ? [] : [workAs(found, tool, mostCalls)];
  }
  const names = Object.keys(tool).map(camelCased);
  const found = TOOLS.filter(({ vendorMembers }) => vendorMembers?.some((name) => names.includes(name)));
  return found.map((each) => workAs(each, {}));
}

function workAs({ name }: Working, settings: Fields, mostCalls?: number): UpstreamWork {
  return workOf(name.slice(name.indexOf(':') + 1), settings, mostCalls);
}

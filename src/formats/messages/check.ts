/**
 * Validates what a schema cannot express and rejects unsupported features: they are named in the error, never silently
 * ignored.
 */
import { invalidField } from '../../base/errors.ts';
import { asksForDeferral, checkDeferral } from '../adapters/deferred-tools/index.ts';
import { type Fields, fieldsOf, isFields, isPresent, listOf, textOf } from '../conversation/fields.ts';
import { base64Fault, dataUrlFault, imageFault } from '../conversation/media-bytes.ts';
import { checkPreferences } from '../conversation/preferences.ts';
import { noSuchTool, nothingToChoose } from '../conversation/request-rules.ts';
import { type FeatureRules, refuseUnbuilt } from '../server-tools/index.ts';
import { checkThread, threadOf } from './thread.ts';

/** Block types accepted in a request, including those that vendors return in answers. */
const BLOCK_TYPES = new Set([
  'compaction',
  'container_upload',
  'document',
  'fallback',
  'image',
  'mcp_tool_use',
  'redacted_thinking',
  'search_result',
  'server_tool_use',
  'text',
  'thinking',
  'tool_addition',
  'tool_reference',
  'tool_removal',
  'tool_result',
  'tool_use',
]);

/** Members that must be strings, for the block types that the gateway reads. */
const REQUIRED_TEXTS: Record<string, readonly string[]> = {
  text: ['text'],
  thinking: ['thinking', 'signature'],
  redacted_thinking: ['data'],
  tool_use: ['id', 'name'],
  tool_result: ['tool_use_id'],
  search_result: ['source', 'title'],
};

/** The source types of images and documents, with the members that must be strings. */
const SOURCES: Record<string, Record<string, readonly string[]>> = {
  image: { base64: ['media_type', 'data'], url: ['url'], file: ['file_id'] },
  document: { base64: ['media_type', 'data'], text: ['data'], url: ['url'], file: ['file_id'], content: [] },
};

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Results of server tools: each tool has its own type with this suffix. */
const RESULT_TYPE = /^[a-z0-9_]+_tool_result$/;

const FEATURES: FeatureRules = { unbuilt: [] };

const ROLES = ['user', 'assistant', 'system'];

/** Throws GatewayError 400 with the path of the offending field. */
export function check(body: unknown, isPart = false): void {
  const request = fieldsOf(body);
  refuseUnbuilt(request, FEATURES);
  checkPreferences(request['provider']);
  if (isList(request['fallbacks']) && isList(request['models'])) {
    throw invalidField('fallbacks', 'cannot be combined with models');
  }
  const { budget_tokens: budget, type } = fieldsOf(request['thinking']);
  const cap = request['max_tokens'];
  if (type === 'enabled' && typeof budget === 'number' && typeof cap === 'number' && budget >= cap) {
    throw invalidField('thinking.budget_tokens', `must be less than max_tokens (${cap})`);
  }
  checkTools(request, isPart);
  checkDeferredTools(request);
  if (request['system'] !== undefined) checkBlocks(request['system'], 'system');
  checkThread(request);
  const continued = threadOf(request)?.previousId !== undefined;
  const messages = listOf(request['messages']);
  if (messages.length === 0 && !continued) throw invalidField('messages', 'must not be empty');
  messages.forEach((entry, index) => {
    const message = fieldsOf(entry);
    if (!ROLES.includes(textOf(message['role']))) {
      throw invalidField(`messages[${index}].role`, `must be one of ${ROLES.join(', ')}`);
    }
    checkBlocks(message['content'], `messages[${index}].content`);
  });
  if (continued) return;
  const first = messages.find((entry) => fieldsOf(entry)['role'] !== 'system');
  if (fieldsOf(first)['role'] === 'assistant') {
    throw invalidField(
      `messages[${messages.indexOf(first)}].role`,
      'must be user: a conversation begins with a user message',
    );
  }
}

function checkTools(request: Fields, isPart: boolean): void {
  const names = new Set<string>();
  listOf(request['tools']).forEach((tool, index) => {
    const { type, name, input_schema: schema } = fieldsOf(tool);
    if (typeof name === 'string' && names.size === names.add(name).size) {
      throw invalidField(`tools[${index}].name`, 'must differ from the names of the other tools');
    }
    if (type !== undefined && type !== null && type !== 'custom') return;
    if (typeof name !== 'string' || name === '')
      throw invalidField(`tools[${index}].name`, 'must be a non-empty string');
    if (!isFields(schema)) throw invalidField(`tools[${index}].input_schema`, 'must be a JSON Schema object');
  });
  checkToolChoice(request, names, isPart);
  const { type, budget_tokens: budget } = fieldsOf(request['thinking']);
  if (type === 'enabled' && typeof budget !== 'number') {
    throw invalidField('thinking.budget_tokens', 'must be a number of tokens');
  }
}

/** As Anthropic, which accepts `auto` and `none` without tools. @param names of the tools */
function checkToolChoice(request: Fields, names: ReadonlySet<string>, isPart: boolean): void {
  const { type, name } = fieldsOf(request['tool_choice']);
  if (type !== 'tool' && name !== undefined) throw invalidField('tool_choice.name', "requires the type 'tool'");
  if (type === 'tool' && typeof name !== 'string') throw invalidField('tool_choice.name', 'must name the tool');
  if ((type !== 'any' && type !== 'tool') || isPart || mayHaveOthers(request)) return;
  const tools = listOf(request['tools']);
  if (type === 'any' && tools.length === 0) throw nothingToChoose();
  // A tool without a name is the gateway's, or a set of tools.
  const allNamed = tools.every((tool) => typeof fieldsOf(tool)['name'] === 'string');
  if (type === 'tool' && allNamed && !names.has(textOf(name))) throw noSuchTool('tool_choice.name');
}

/** Whether tools are added to those of the request: by the gateway, an MCP server, a message, or the thread it continues. */
function mayHaveOthers(request: Fields): boolean {
  if (['plugins', 'mcp_servers', 'thread'].some((member) => isPresent(request[member]))) return true;
  if (asksForDeferral(request)) return true;
  return listOf(request['messages']).some((message) =>
    listOf(fieldsOf(message)['content']).some((block) => fieldsOf(block)['type'] === 'tool_addition'),
  );
}

/** Without `deferred_tools`, `defer_loading` belongs to the vendor, whose search is a tool of its own. */
function checkDeferredTools(request: Fields): void {
  if (!asksForDeferral(request)) return;
  const tools = listOf(request['tools']).map((value, index) => {
    const { type, name, defer_loading: mark } = fieldsOf(value);
    const isFunction = type === undefined || type === null || type === 'custom';
    return { path: `tools[${index}]`, name: isFunction ? textOf(name) : undefined, deferred: mark === true };
  });
  checkDeferral(request, tools, textOf(fieldsOf(request['tool_choice'])['name']));
}

function checkBlocks(content: unknown, path: string): void {
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) throw invalidField(path, 'must be a string or a list of content blocks');
  content.forEach((block, index) => {
    const at = `${path}[${index}]`;
    if (!isFields(block)) throw invalidField(at, 'must be a content block');
    const type = block['type'];
    if (typeof type !== 'string' || !(BLOCK_TYPES.has(type) || RESULT_TYPE.test(type))) {
      throw invalidField(`${at}.type`, `must be a known content block type, not ${JSON.stringify(type) ?? 'missing'}`);
    }
    for (const member of REQUIRED_TEXTS[type] ?? []) requireText(block, member, at);
    if (type === 'tool_use') checkInput(block['input'], `${at}.input`);
    if (SOURCES[type] !== undefined) checkSource(type, block['source'], `${at}.source`);
    if (type === 'search_result') checkBlocks(block['content'], `${at}.content`);
    if (type === 'tool_result' && block['content'] !== undefined) checkBlocks(block['content'], `${at}.content`);
  });
}

function checkInput(input: unknown, path: string): void {
  if (input !== undefined && !isFields(input)) throw invalidField(path, 'must be an object');
}

function checkSource(block: string, source: unknown, path: string): void {
  if (!isFields(source)) throw invalidField(path, 'must be an object');
  const kinds = SOURCES[block] ?? {};
  const kind = textOf(source['type']);
  const required = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (required === undefined) throw invalidField(`${path}.type`, `must be one of ${Object.keys(kinds).join(', ')}`);
  for (const member of required) requireText(source, member, path);
  // Only URLs that an upstream may fetch, and data URLs; never `file:` and the like (songquanpeng/one-api#2387).
  if (source['type'] === 'url' && !/^((https?|gs|s3):\/\/[^\s]|data:)/i.test(textOf(source['url']))) {
    throw invalidField(`${path}.url`, 'must be an http(s) URL or a data: URL');
  }
  const type = source['media_type'];
  if (block === 'image' && source['type'] === 'base64' && !IMAGE_TYPES.includes(textOf(type))) {
    throw invalidField(`${path}.media_type`, `must be one of ${IMAGE_TYPES.join(', ')}`);
  }
  if (kind === 'base64') {
    const data = textOf(source['data']);
    const fault = block === 'image' ? imageFault(textOf(type), data) : base64Fault(data);
    if (fault !== undefined) throw invalidField(`${path}.data`, fault);
  }
  const fault = kind === 'url' ? dataUrlFault(textOf(source['url'])) : undefined;
  if (fault !== undefined) throw invalidField(`${path}.url`, fault);
  if (source['type'] === 'content') checkBlocks(source['content'], `${path}.content`);
}

function requireText(object: Fields, member: string, path: string): void {
  if (typeof object[member] !== 'string') throw invalidField(`${path}.${member}`, 'must be a string');
}

function isList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

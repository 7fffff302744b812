/**
 * Request rules that the schema cannot express, for stateless requests: one that depends on a stored response is refused with
 * the field's name, never silently ignored.
 */
import { invalidField } from '../../base/errors.ts';
import { asksForDeferral, checkDeferral } from '../adapters/deferred-tools/index.ts';
import { summaryOf } from '../conversation/compaction.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { base64Fault, dataUrlFault } from '../conversation/media-bytes.ts';
import { checkPreferences } from '../conversation/preferences.ts';
import { checkMetadata, checkModels, checkReasoningObject, checkSchemaName } from '../conversation/request-rules.ts';
import { type FeatureRules, refuseUnbuilt, unbuilt } from '../server-tools/index.ts';
import { checkTools } from './check-tools.ts';
import { checkSubagents } from './subagent-trace.ts';

const FEATURES: FeatureRules = { unbuilt: [] };
const ROLES = ['user', 'assistant', 'system', 'developer'];

/** Throws GatewayError 400 with the path of the offending field. */
export function check(body: unknown, isPart = false): void {
  const request = fieldsOf(body);
  refuseState(request);
  refuseUnbuilt(request, FEATURES);
  checkPreferences(request['provider']);
  if (fieldsOf(request['debug'])['echo_upstream_body'] === true) throw unbuilt('debug.echo_upstream_body');
  checkModels(request);
  checkReasoningObject(fieldsOf(request['reasoning']));
  checkTools(request, isPart);
  checkDeferredTools(request);
  checkMetadata(request);
  const format = fieldsOf(fieldsOf(request['text'])['format']);
  if (format['type'] === 'json_schema') {
    checkSchemaName(format['name'], 'text.format.name');
    if (!isFields(format['schema'])) throw invalidField('text.format.schema', 'is missing');
  }
  checkInput(request);
}

/** Where there is state, it is taken out of the request before this check (`responses/`). */
function refuseState(request: Fields): void {
  for (const field of ['previous_response_id', 'conversation']) {
    if (request[field] !== undefined && request[field] !== null) {
      throw invalidField(field, 'cannot be used here: send the earlier items in input');
    }
  }
  for (const field of ['store', 'background']) {
    if (request[field] === true) throw invalidField(field, 'must be false or absent here');
  }
}

/** Without the deferral protocol, `defer_loading` belongs to the vendor and its own tool search. */
function checkDeferredTools(request: Fields): void {
  if (!asksForDeferral(request)) return;
  const tools = listOf(request['tools']).map((value, index) => {
    const { type, name, defer_loading: mark } = fieldsOf(value);
    return { path: `tools[${index}]`, name: type === 'function' ? textOf(name) : undefined, deferred: mark === true };
  });
  checkDeferral(request, tools, textOf(fieldsOf(request['tool_choice'])['name']));
}

function checkInput(request: Fields): void {
  const { input } = request;
  if (input === undefined || input === null) {
    if (!isFields(request['prompt'])) throw invalidField('input', 'is missing');
    return;
  }
  if (Array.isArray(input) && input.length === 0 && !isFields(request['prompt'])) {
    throw invalidField('input', 'must not be empty');
  }
  listOf(input).forEach((entry, index) => void checkItem(fieldsOf(entry), `input[${index}]`));
  checkSubagents(listOf(input), checkItem);
}

/** Members that must be strings, by item type. */
const REQUIRED = new Map<unknown, readonly string[]>(
  Object.entries({
    function_call: ['call_id', 'name', 'arguments'],
    custom_tool_call: ['call_id', 'name', 'input'],
    function_call_output: ['call_id'],
    custom_tool_call_output: ['call_id'],
  }),
);

function checkItem(item: Fields, path: string): void {
  const type = item['type'] ?? 'message';
  if (type === 'item_reference' || (item['type'] == null && item['role'] === undefined && 'id' in item)) {
    throw invalidField(path, 'refers to a stored item, which is not supported here: send the item itself');
  }
  if (type === 'message') {
    if (!ROLES.includes(textOf(item['role']))) throw invalidField(`${path}.role`, `must be one of ${ROLES.join(', ')}`);
    if (item['role'] !== 'assistant' && (item['content'] === undefined || item['content'] === null)) {
      throw invalidField(`${path}.content`, 'is missing');
    }
    checkContent(item['content'], `${path}.content`);
    return;
  }
  // Where compactions can be used, they are replaced before this check (`responses/`).
  if (summaryOf(item) !== undefined) {
    throw invalidField(path, 'is a compaction of this gateway, which is not supported here: send the items themselves');
  }
  for (const member of REQUIRED.get(type) ?? []) {
    const value = item[member];
    if (typeof value !== 'string') throw invalidField(`${path}.${member}`, 'must be a string');
    // Translation would lose a call without a name, and its result with it.
    if (value === '' && member !== 'arguments' && member !== 'input') {
      throw invalidField(`${path}.${member}`, 'must not be empty');
    }
  }
  if (type === 'function_call_output' || type === 'custom_tool_call_output') {
    if (item['output'] === undefined || item['output'] === null) throw invalidField(`${path}.output`, 'is missing');
    checkContent(item['output'], `${path}.output`);
  }
}

/** Members of which at least one is required, by content part type. */
const NEEDS = new Map<unknown, readonly string[]>(
  Object.entries({
    input_text: ['text'],
    output_text: ['text'],
    refusal: ['refusal'],
    input_image: ['image_url', 'file_id'],
    input_file: ['file_data', 'file_id', 'file_url'],
    input_video: ['video_url'],
  }),
);

function checkContent(content: unknown, path: string): void {
  listOf(content).forEach((entry, index) => {
    const part = fieldsOf(entry);
    const at = `${path}[${index}]`;
    if (typeof part['type'] !== 'string') throw invalidField(`${at}.type`, 'is missing');
    const needs = NEEDS.get(part['type']);
    if (needs !== undefined && !needs.some((member) => typeof part[member] === 'string')) {
      throw invalidField(
        `${at}.${needs[0]}`,
        needs.length === 1 ? 'is missing' : `or ${needs.slice(1).join(' or ')} is missing`,
      );
    }
    for (const member of ['image_url', 'file_url', 'video_url']) {
      const address = part[member];
      if (typeof address !== 'string') continue;
      checkAddress(address, `${at}.${member}`);
      refuseFault(dataUrlFault(address), `${at}.${member}`);
    }
    const { file_data: data } = part;
    if (typeof data === 'string') {
      refuseFault(/^(?:data|https?):/i.test(data) ? dataUrlFault(data) : base64Fault(data), `${at}.file_data`);
    }
    if (part['type'] === 'input_audio') {
      const audio = fieldsOf(part['input_audio']);
      for (const member of ['data', 'format']) {
        if (typeof audio[member] !== 'string') throw invalidField(`${at}.input_audio.${member}`, 'is missing');
      }
      refuseFault(base64Fault(textOf(audio['data'])), `${at}.input_audio.data`);
    }
  });
}

function refuseFault(fault: string | undefined, path: string): void {
  if (fault !== undefined) throw invalidField(path, fault);
}

/** Only addresses that an upstream may fetch, and data URLs. Rejects schemes such as `file:`. */
function checkAddress(address: string, path: string): void {
  if (!/^(https?:\/\/|gs:\/\/|s3:\/\/|data:)[^\s]/i.test(address.slice(0, 64))) {
    throw invalidField(path, 'must be an http(s), gs or s3 URL or a data: URL');
  }
}

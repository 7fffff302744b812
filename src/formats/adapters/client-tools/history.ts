/** Rewrites calls and results of client tools in a history as those of functions. */
import { stringifyJson } from '../../../base/json.ts';
import type { Message, OpaquePart, Part, ToolCallPart, ToolResultPart } from '../../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../../conversation/fields.ts';
import { patchArguments } from '../../conversation/patch-call.ts';
import { decodeContent } from '../../responses/decode-content.ts';
import { shellArguments } from '../../responses/own-calls.ts';
import type { Directory } from './directory.ts';
import { INPUT_MEMBER } from './shapes.ts';

export function withFunctionCalls(messages: readonly Message[], directory: Directory): Message[] {
  const rewritten: Message[] = [];
  /** Local shell results reference the item id of their call, not its call id. */
  const callIds = new Map<string, string>();
  let joining = false;
  for (const message of messages) {
    const parts = message.parts.flatMap((part) => rewrite(part, directory, callIds));
    if (parts.length === 0 && message.parts.length > 0) continue;
    const becomesResult = message.role === 'user' && parts[0]?.type === 'toolResult';
    const last = rewritten.at(-1);
    if (last?.role === 'tool' && (becomesResult || (joining && message.role === 'tool'))) {
      // Results of one turn share a message, as decoding does for functions.
      rewritten[rewritten.length - 1] = { ...last, parts: [...last.parts, ...parts] };
      joining = true;
    } else if (becomesResult) {
      rewritten.push({ role: 'tool', parts });
      joining = true;
    } else {
      const same = parts.length === message.parts.length && parts.every((part, at) => part === message.parts[at]);
      rewritten.push(same ? message : { ...message, parts });
      joining = false;
    }
  }
  return rewritten;
}

function rewrite(part: Part, directory: Directory, callIds: Map<string, string>): Part[] {
  if (part.type === 'toolCall') return [functionCall(part, directory)];
  if (part.type !== 'opaque' || part.origin !== 'responses') return [part];
  return item(part, fieldsOf(part.value), directory, callIds);
}

/** A call under its function name; free text becomes the member of an object. */
function functionCall(part: ToolCallPart, directory: Directory): ToolCallPart {
  const own = part.extras?.responses;
  const namespace = textOrUndefined(own?.['namespace']);
  const becomes = part.custom === true && !directory.takes('custom');
  if (!becomes && directory.takes('namespace')) return part;
  const name = directory.upstreamName(part.name, namespace);
  if (!becomes && name === part.name && namespace === undefined) return part;
  const { namespace: _namespace, ...others } = own ?? {};
  const { custom, extras, ...call } = part;
  if (!becomes) return { ...part, name, extras: { ...extras, responses: others } };
  // An item's id encodes its type, so it is dropped when the type changes.
  const { id: _id, ...unnamed } = others;
  const kept = { ...extras, responses: unnamed };
  return { ...call, name, arguments: stringifyJson({ [INPUT_MEMBER]: part.arguments }), extras: kept };
}

function item(part: OpaquePart, value: Fields, directory: Directory, callIds: Map<string, string>): Part[] {
  const type = textOf(value['type']);
  switch (type) {
    case 'local_shell_call':
      return directory.takes('local_shell')
        ? [part]
        : [call('local_shell', value, shellArguments(fieldsOf(value['action'])))];
    case 'local_shell_call_output':
      return directory.takes('local_shell') ? [part] : [result(value, decodeContent(value['output']), callIds)];
    case 'apply_patch_call':
      return directory.takes('apply_patch') ? [part] : [call('apply_patch', value, patchArguments(value['operation']))];
    case 'apply_patch_call_output':
      return directory.takes('apply_patch') ? [part] : [patchResult(value, callIds)];
    case 'tool_search_call':
      if (directory.takes('tool_search')) return [part];
      // The provider ran this search: the found tools are already in the request.
      if (textOf(value['call_id']) === '') return [];
      return [call('tool_search', value, argumentsText(value['arguments']))];
    case 'tool_search_output':
      if (directory.takes('tool_search')) return [part];
      if (textOf(value['call_id']) === '') return [];
      return [result(value, [{ type: 'text', text: foundText(value, directory) }], callIds)];
    case 'additional_tools':
      return directory.takes('additional_tools') ? [part] : [];
    default:
      return [part];
  }

  function call(name: string, { id, call_id: callId }: Fields, written: string): ToolCallPart {
    const called = textOf(callId) || textOf(id);
    if (typeof id === 'string') callIds.set(id, called);
    return { type: 'toolCall', id: called, name: directory.upstreamName(name, undefined), arguments: written };
  }
}

function argumentsText(value: unknown): string {
  return typeof value === 'string' ? value : stringifyJson(value ?? {});
}

function result({ id, call_id: callId }: Fields, parts: Part[], callIds: Map<string, string>): ToolResultPart {
  const named = textOf(callId) || textOf(id);
  return { type: 'toolResult', callId: callIds.get(named) ?? named, parts };
}

function patchResult(value: Fields, callIds: Map<string, string>): ToolResultPart {
  const failed = value['status'] === 'failed';
  const text = textOf(value['output']) || (failed ? 'The patch was not applied' : 'The patch was applied');
  return { ...result(value, [{ type: 'text', text }], callIds), ...(failed && { isError: true }) };
}

/** The tools found, by the names under which the model can call them. */
function foundText({ tools }: Fields, directory: Directory): string {
  const found = listOf(tools).flatMap((entry) => {
    const tool = fieldsOf(entry);
    const namespace = tool['type'] === 'namespace' ? textOf(tool['name']) : undefined;
    const inner = namespace === undefined ? [tool] : listOf(tool['tools']).map(fieldsOf);
    return inner.map(({ name, description }) => ({
      name: directory.upstreamName(textOf(name), namespace),
      ...(typeof description === 'string' && { description }),
    }));
  });
  return stringifyJson({ tools: found });
}

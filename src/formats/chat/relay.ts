/**
 * Relay for an upstream of the client's own format: the original text passes with a few members edited, so unknown
 * members and number literals survive. Only members that violate the format are repaired.
 */
import { type JsonDocument, parseJson, stringifyJson } from '../../base/json.ts';
import type { Edit } from '../../base/json-edits.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { EncodeTarget, Relay } from '../conversation/format.ts';
import { Losses } from '../conversation/losses.ts';
import { memberHoldsNull, withoutNullKeywords } from '../conversation/plain-schema.ts';
import { adaptMessages } from './adapt-messages.ts';
import { adaptParameters } from './adapt-parameters.ts';
import { outputCap as askedCap, decodeReasoningSettings } from './decode.ts';
import type { ChatDialect } from './dialect.ts';
import { outputCap } from './encode.ts';
import { encodeReasoning } from './encode-reasoning.ts';
import { GATEWAY_FIELDS, serviceTier } from './fields.ts';
import { relayReply } from './relay-reply.ts';
import { ChatRelayStream } from './relay-stream.ts';
import { withRequiredThinking } from './required-thinking.ts';
import { mergeStrictly } from './strict-template.ts';

export const relay: Relay = {
  edits,
  reply: relayReply,
  stream: (stamp, dialect) => new ChatRelayStream(stamp, dialect.chat?.thinkTags),
};

function edits(document: JsonDocument, target: EncodeTarget, losses: Losses = new Losses()): Edit[] {
  const dialect = target.dialect.chat ?? {};
  const body = document.structure;
  const changes = new Map<string, string | undefined>();
  for (const field in body) if (GATEWAY_FIELDS.has(field)) changes.set(field, undefined);
  changes.set('model', JSON.stringify(target.model));
  const userField = dialect.userField ?? 'user';
  if (userField !== 'none') changes.set(userField, JSON.stringify(target.user));
  editStream(document, target, dialect, changes);
  editCap(body, target, dialect, changes);
  editReasoning(document, target, changes, losses);
  const tier = nonEmptyText(body['service_tier']);
  if (tier !== undefined && serviceTier(tier) !== tier) changes.set('service_tier', JSON.stringify(serviceTier(tier)));
  if (!dialect.cacheControl) {
    if ('cache_control' in body) changes.set('cache_control', undefined);
  }
  const tools = editedTools(document, dialect);
  if (tools !== undefined) changes.set('tools', stringifyJson(tools));
  const messages = editedMessages(document, dialect, losses);
  if (messages !== undefined) changes.set('messages', stringifyJson(messages));
  editParameters(document, target, changes, losses);
  if (dialect.requiresThinking !== undefined) editThinking(document, target, changes);
  const edits: Edit[] = [];
  for (const [key, json] of changes) edits.push({ key, json });
  return edits;
}

type Changes = Map<string, string | undefined>;

/** Usage is always requested for streams; OpenAI rejects `stream_options` on other requests. */
function editStream(document: JsonDocument, target: EncodeTarget, dialect: ChatDialect, changes: Changes): void {
  const body = document.structure;
  if ((body['stream'] === true) !== target.stream) changes.set('stream', String(target.stream));
  const options = fieldsOrUndefined(document.member('stream_options'));
  if (target.stream && dialect.streamUsage !== false) {
    if (options?.['include_usage'] !== true) {
      changes.set('stream_options', stringifyJson({ ...options, include_usage: true }));
    }
  } else if ('stream_options' in body) changes.set('stream_options', undefined);
}

function editCap(body: Fields, target: EncodeTarget, dialect: ChatDialect, changes: Changes): void {
  const wanted = dialect.maxTokens ?? 'max_tokens';
  const other = wanted === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  const cap = outputCap(askedCap(body), target);
  if (other in body) changes.set(other, undefined);
  if (cap !== undefined && body[wanted] !== cap) changes.set(wanted, String(cap));
}

/**
 * Replaces our `reasoning` object by the upstream's own parameters. The client's shorthand stays where the upstream
 * knows all its words.
 */
function editReasoning(document: JsonDocument, target: EncodeTarget, changes: Changes, losses: Losses): void {
  const body = document.structure;
  const dialect = target.dialect.chat ?? {};
  if (dialect.reasoning === 'object') {
    const hides =
      body['include_reasoning'] === false && fieldsOrUndefined(body['reasoning'])?.['exclude'] === undefined;
    if (hides)
      changes.set('reasoning', stringifyJson({ ...fieldsOrUndefined(document.member('reasoning')), exclude: true }));
    return;
  }
  const hides = body['include_reasoning'] === false && dialect.reasoningRules !== undefined;
  const plain = dialect.reasoning === undefined && dialect.reasoningRules === undefined;
  if (!('reasoning' in body) && !hides && (plain || !('reasoning_effort' in body))) return;
  const said: Fields = {};
  const cap = outputCap(askedCap(body), target) ?? target.maxOutputTokens;
  encodeReasoning(said, decodeReasoningSettings(body), { cap, model: target.model }, dialect, losses);
  if ('reasoning' in body) changes.set('reasoning', undefined);
  const effort = said['reasoning_effort'];
  if (effort === undefined && 'reasoning_effort' in body && !plain) changes.set('reasoning_effort', undefined);
  for (const [key, value] of Object.entries(said)) {
    // A vendor's own parameter that the client set is kept.
    const ours = key === 'reasoning' || (key === 'reasoning_effort' ? body[key] !== value : !(key in body));
    if (ours) changes.set(key, stringifyJson(value));
  }
}

/** The value of a member including pending changes. */
function current(document: JsonDocument, changes: Changes, key: string): unknown {
  const json = changes.get(key);
  if (json !== undefined) return parseJson(json);
  if (changes.has(key)) return undefined;
  return key === 'tools' || key === 'messages' ? document.exact[key] : document.member(key);
}

function editThinking(document: JsonDocument, target: EncodeTarget, changes: Changes): void {
  // The parsed structure needs no further work and holds what decides, unless the messages were edited.
  const plain = changes.has('messages') ? current(document, changes, 'messages') : document.structure['messages'];
  const read = (key: string) => current(document, changes, key);
  const complete = (messages: unknown) =>
    withRequiredThinking(listOf(messages), read, target.dialect.chat ?? {}, target.model);
  if (complete(plain) === plain) return;
  changes.set('messages', stringifyJson(complete(read('messages'))));
}

/** Applies the dialect to the parameters, including pending changes. */
function editParameters(document: JsonDocument, target: EncodeTarget, changes: Changes, losses: Losses): void {
  const request = {
    has: (key: string) => (changes.has(key) ? changes.get(key) !== undefined : key in document.structure),
    read: (key: string) => current(document, changes, key),
  };
  for (const [key, value] of adaptParameters(request, target, losses)) {
    changes.set(key, value === undefined ? undefined : stringifyJson(value));
  }
}

/** The tools as the upstream accepts them; undefined (the usual case) when nothing changes. */
function editedTools(document: JsonDocument, dialect: ChatDialect): readonly unknown[] | undefined {
  const marks = !dialect.cacheControl && listOf(document.structure['tools']).some(hasMark);
  if (!marks && !memberHoldsNull(document, 'tools')) return undefined;
  const tools = listOf(document.exact['tools']);
  const edited = tools.map((tool) => withPlainSchema(marks ? withoutMark(tool) : tool));
  return edited.some((tool, at) => tool !== tools[at]) ? edited : undefined;
}

function withPlainSchema(tool: unknown): unknown {
  const { function: definition, ...others } = fieldsOf(tool);
  const { parameters, ...described } = fieldsOf(definition);
  if (parameters === null) return { ...others, function: described };
  const schema = withoutNullKeywords(parameters);
  return schema === parameters ? tool : { ...others, function: { ...described, parameters: schema } };
}

/** The messages as the upstream accepts them; undefined (the usual case) when nothing changes. */
function editedMessages(document: JsonDocument, dialect: ChatDialect, losses: Losses): readonly unknown[] | undefined {
  // Decided on the parsed structure, which is already available.
  const plain = listOf(document.structure['messages']) as Fields[];
  const developer =
    !dialect.developerRole && plain.some((message) => fieldsOrUndefined(message)?.['role'] === 'developer');
  const marks =
    !dialect.cacheControl && plain.some((message) => listOf(fieldsOrUndefined(message)?.['content']).some(hasMark));
  const reasoning = !dialect.reasoningDetails && plain.some(replaysThinking);
  const adapts = adaptMessages(plain, dialect, new Losses()) !== plain;
  if (!developer && !marks && !reasoning && !adapts && !dialect.strictTemplate) return undefined;
  const messages = listOf(document.exact['messages']);
  let changed = false;
  const edited = messages.map((original) => {
    let message = fieldsOrUndefined(original);
    if (message === undefined) return original;
    if (developer && message['role'] === 'developer') message = { ...message, role: 'system' };
    if (marks && listOf(message['content']).some(hasMark)) {
      message = { ...message, content: listOf(message['content']).map(withoutMark) };
    }
    if (reasoning) message = withReplay(message, dialect);
    changed ||= message !== original;
    return message;
  });
  if (dialect.strictTemplate) {
    const merged = mergeStrictly(edited as Fields[]);
    const same = merged.every((message, index) => message['role'] === fieldsOrUndefined(messages[index])?.['role']);
    const fits = !changed && !adapts && same && merged.length === messages.length;
    return fits ? undefined : adaptMessages(merged, dialect, losses);
  }
  // An edit may have changed a message's role, and with it the rules that apply.
  const adapted = adapts || changed ? adaptMessages(edited as Fields[], dialect, losses) : edited;
  return changed || adapted !== edited ? adapted : undefined;
}

/** `cache_control` is ours; `prompt_cache_breakpoint` is a vendor's own member and passes unchanged. */
function hasMark(value: unknown): boolean {
  return 'cache_control' in fieldsOf(value);
}

function withoutMark(value: unknown): unknown {
  if (!hasMark(value)) return value;
  const { cache_control: _mark, ...others } = fieldsOrUndefined(value)!;
  return others;
}

function replaysThinking(value: unknown): boolean {
  const message = fieldsOrUndefined(value);
  return message !== undefined && ('reasoning' in message || 'reasoning_details' in message);
}

/**
 * Renames thinking that the client got under our names to the upstream's name, or drops it. `reasoning_content` is a
 * vendor's own member and passes unchanged.
 */
function withReplay(message: Fields, dialect: ChatDialect): Fields {
  if (!replaysThinking(message)) return message;
  const { reasoning, reasoning_details: _details, ...others } = message;
  const plain = nonEmptyText(reasoning);
  if (dialect.reasoningReplay === 'reasoning') return 'reasoning' in message ? { ...others, reasoning } : others;
  if (dialect.reasoningReplay === undefined || plain === undefined || 'reasoning_content' in others) return others;
  return { ...others, reasoning_content: plain };
}

/**
 * Relay for an upstream of the client's own format: the original text passes with a few members edited. Everything else
 * (unknown members and events, number literals, white space) arrives as it was sent.
 */
import type { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, parseJson, scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import type { Finish, Turn, TurnEvent, Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../conversation/fields.ts';
import {
  type Closing,
  costMembers,
  type EncodeTarget,
  type Relay,
  type RelayedAnswer,
  type RelayStream,
  type Stamp,
} from '../conversation/format.ts';
import { relayedTools } from '../conversation/plain-schema.ts';
import { isPlainId, ToolIds } from '../conversation/tool-ids.ts';
import { isReadable } from './citations.ts';
import { OWN_MEMBERS } from './decode.ts';
import { isOnlyShown } from './decode-blocks.ts';
import { DEFAULT_CACHE_MARKS } from './encode.ts';
import { hostedMembers, SMALLEST_BUDGET, SMALLEST_OUTPUT_LIMIT } from './encode-settings.ts';
import { errorEvent } from './encoder.ts';
import { relayedReason } from './finish.ts';
import { completeBlock, completeContent, DELTA, isStrange, MESSAGE, missing, missingCounts } from './promised.ts';
import { RelayedBlocks } from './relay-blocks.ts';
import { breakpointEdits } from './relay-breakpoints.ts';
import { isSealed } from './sealed.ts';
import { isOfMissingTool } from './served-calls.ts';
import { upstreamIds } from './thread.ts';
import { FAST } from './tier.ts';
import { encodeUsage, mergeUsage } from './usage.ts';

export const relay: Relay = { edits, reply, stream: (stamp) => new MessagesRelayStream(stamp), tierWord: FAST };

/** Edits of the client's body. Adds a missing output cap, and lowers it where the gateway imposes one. */
function edits(document: JsonDocument, target: EncodeTarget): Edit[] {
  // Only ASCII members are read here, so the undecoded structure suffices; decoding a large body would cost more than
  // parsing it.
  const body = document.structure;
  const { hosted } = target.dialect.messages ?? {};
  const list: Edit[] = hosted ? hostedEdits(document, target) : [{ key: 'model', json: JSON.stringify(target.model) }];
  for (const key of OWN_MEMBERS) if (key in body) list.push({ key, json: undefined });
  list.push({
    key: 'metadata',
    json: stringifyJson({ ...fieldsOf(document.member('metadata')), user_id: target.user }),
  });
  if (hosted?.streamInPath) list.push({ key: 'stream', json: undefined });
  else if ((body['stream'] === true) !== target.stream) list.push({ key: 'stream', json: String(target.stream) });
  const messages = editedMessages(document, target);
  if (messages !== undefined) list.push({ key: 'messages', json: messages });
  if (target.promptCaching === 'always') {
    const limit = target.dialect.messages?.maxCacheMarks ?? DEFAULT_CACHE_MARKS;
    list.push(...breakpointEdits(document, messages, limit));
  }
  const tools = relayedTools(document, 'input_schema');
  if (tools !== undefined) list.push({ key: 'tools', json: tools });
  const asked = typeof body['max_tokens'] === 'number' ? body['max_tokens'] : undefined;
  const wanted = asked ?? target.maxOutputTokens ?? SMALLEST_OUTPUT_LIMIT;
  const cap = target.capOutputTokens === undefined ? wanted : Math.min(wanted, target.capOutputTokens);
  if (cap !== asked) {
    list.push({ key: 'max_tokens', json: String(cap) });
    const thinking = fieldsOf(document.member('thinking'));
    if (typeof thinking['budget_tokens'] === 'number' && thinking['budget_tokens'] >= cap) {
      list.push({ key: 'thinking', json: JSON.stringify(fittingThinking(thinking, cap)) });
    }
  }
  for (const [key, value] of Object.entries(upstreamIds(target, (name) => document.member(name)))) {
    list.push({ key, json: stringifyJson(value) });
  }
  for (const key of target.dialect.messages?.refuses ?? []) list.push({ key, json: undefined });
  return list;
}

/** Edits for cloud providers: the model goes into the path, version and betas into the body. */
function hostedEdits(document: JsonDocument, target: EncodeTarget): Edit[] {
  const list: Edit[] = [{ key: 'model', json: undefined }];
  for (const [key, value] of Object.entries(hostedMembers(target, document.structure['anthropic_beta'])))
    list.push({ key, json: JSON.stringify(value) });
  return list;
}

/**
 * The messages without what this upstream would reject: calls that another format's upstream has run, reasoning of
 * other vendors (which travels sealed through the client), unsigned thinking unless the upstream accepts it, and blocks of
 * tools that it lacks, with citations of them. Call ids from other services are rewritten to the allowed characters. Undefined (the usual case) when nothing changes.
 */
function editedMessages(document: JsonDocument, target: EncodeTarget): string | undefined {
  const unsigned = target.dialect.messages?.unsignedThinking === true;
  const isForeign = (block: Fields): boolean => {
    const { type, signature, data } = block;
    if (isOnlyShown(block) || isOfMissingTool(block, target)) return true;
    if (type === 'redacted_thinking') return isSealed(data);
    return type === 'thinking' && (isSealed(signature) || (signature === '' && !unsigned));
  };
  const isRead = (citation: unknown): boolean => isReadable(citation, target);
  let foreign = false;
  let strangeIds = false;
  let strangeCitations = false;
  // Only ASCII values are inspected, so the undecoded structure suffices.
  for (const message of listOf(document.structure['messages'])) {
    for (const entry of listOf(fieldsOf(message)['content'])) {
      const block = fieldsOf(entry);
      foreign ||= isForeign(block);
      strangeIds ||= hasStrangeId(block);
      strangeCitations ||= Array.isArray(block['citations']) && !block['citations'].every(isRead);
    }
  }
  if (!foreign && !strangeIds && !strangeCitations) return undefined;
  const ids = new ToolIds();
  const kept = listOf(document.exact['messages']).flatMap((message) => {
    const { content } = fieldsOf(message);
    if (!Array.isArray(content)) return [message];
    const own = foreign ? content.filter((block) => !isForeign(fieldsOf(block))) : content;
    const plain = strangeIds ? own.map((block) => withPlainId(block, ids)) : own;
    const blocks = strangeCitations
      ? plain.map((block) => (isFields(block) ? withCitations(block, isRead) : block))
      : plain;
    return blocks.length === 0 && content.length > 0 ? [] : [{ ...fieldsOf(message), content: blocks }];
  });
  return stringifyJson(kept);
}

/** The block with those of its citations that are read. */
function withCitations(block: Fields, isRead: (citation: unknown) => boolean): Fields {
  const { citations, ...others } = block;
  if (!Array.isArray(citations)) return block;
  const read = citations.filter(isRead);
  return read.length === 0 ? others : { ...others, citations: read };
}

function hasStrangeId({ type, id, tool_use_id: answered }: Fields): boolean {
  if (type === 'tool_use') return typeof id === 'string' && !isPlainId(id);
  return type === 'tool_result' && typeof answered === 'string' && !isPlainId(answered);
}

function withPlainId(block: unknown, ids: ToolIds): unknown {
  const { type, id, tool_use_id: answered } = fieldsOf(block);
  if (type === 'tool_use' && typeof id === 'string') return { ...fieldsOf(block), id: ids.call(id) };
  if (type !== 'tool_result' || typeof answered !== 'string') return block;
  return { ...fieldsOf(block), tool_use_id: ids.result(answered) };
}

/** A budget must be lower than the cap; if even the smallest is not, thinking is disabled. */
function fittingThinking(thinking: Fields, cap: number): Fields {
  return cap > SMALLEST_BUDGET ? { ...thinking, budget_tokens: cap - 1 } : { type: 'disabled' };
}

function reply({ text, value, turn, stamp, closing }: RelayedAnswer): string {
  const members = scanMembers(text);
  const usage = members.findLast((member) => member.key === 'usage');
  const record = usage === undefined ? 'null' : text.slice(usage.valueStart, usage.valueEnd);
  const answer = fieldsOf(value);
  const content = members.findLast((member) => member.key === 'content');
  const list: Edit[] = [
    ...stampEdits(stamp),
    ...missing(answer, MESSAGE),
    { key: 'usage', json: patchUsage(record, answer['usage'], closing, closing.usage ?? turn.usage, true) },
    ...metadataEdits(closing),
  ];
  const finish = turn.choices[0]?.finish;
  const strange = Array.isArray(answer['content']) && answer['content'].some(isStrange);
  if (finish !== undefined && !strange) list.push(...reasonEdits(finish));
  if (content !== undefined && Array.isArray(answer['content'])) {
    const ids = turn.choices[0]?.parts.flatMap((part) => (part.type === 'toolCall' ? part.id : []));
    const json = completeContent(text.slice(content.valueStart, content.valueEnd), answer['content'], ids);
    list.push({ key: 'content', json });
  }
  return patchMembers(text, members, list);
}

function reasonEdits(finish: Finish): Edit[] {
  const reason = relayedReason(finish);
  return reason === finish.native ? [] : [{ key: 'stop_reason', json: JSON.stringify(reason) }];
}

function stampEdits(stamp: Stamp): Edit[] {
  return [
    { key: 'id', json: JSON.stringify(stamp.id) },
    { key: 'model', json: JSON.stringify(stamp.model) },
    { key: 'provider', json: JSON.stringify(stamp.provider) },
  ];
}

function metadataEdits(closing: Closing): Edit[] {
  const { metadata } = closing;
  return metadata === undefined ? [] : [{ key: metadata.key, json: JSON.stringify(metadata.value) }];
}

const COST_MEMBERS = ['cost', 'is_byok', 'cost_details'] as const;

/** The upstream's usage record with our cost and the counts that it lacks. `opening` as in `missingCounts`. */
function patchUsage(text: string, value: unknown, closing: Closing, usage: Turn['usage'], opening: boolean): string {
  if (!isFields(value)) return stringifyJson({ ...encodeUsage(usage), ...costMembers(closing.cost) });
  const list = missingCounts(value, usage, opening);
  const cost = costMembers(closing.cost);
  for (const key of COST_MEMBERS) {
    // An upstream's own cost is never passed on.
    if (cost[key] !== undefined || value[key] !== undefined) list.push({ key, json: JSON.stringify(cost[key]) });
  }
  return patchMembers(text, scanMembers(text), list);
}

/**
 * Relays a stream. Content passes unchanged; the closing events are held until the cost is known. A repeated
 * `message_start` is sent once; a missing start, block stop or end is added.
 */
class MessagesRelayStream implements RelayStream {
  readonly #stamp: Stamp;
  #started = false;
  readonly #blocks = new RelayedBlocks();
  #delta: { text: string; value: Fields } | undefined;
  #stop: string | undefined;
  #usage: Usage | undefined;
  #finish: Finish | undefined;
  /** Whether a block of an unknown type was received. */
  #strange = false;
  /** The start's stop reason, for upstreams that send it only there. */
  #startReason: Fields = {};

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): string {
    if (!isFields(value) || this.#stop !== undefined) return '';
    const type = typeof value['type'] === 'string' ? value['type'] : name;
    switch (type) {
      case 'content_block_delta':
        return addsNull(fieldsOf(value['delta'])) ? '' : forward(type, this.#blocks.delta(data, value['index']));
      case 'content_block_stop':
        return forward(type, this.#blocks.stop(data, value['index']));
      case 'message_start':
        this.#take(events);
        return this.#openMessage(data, value);
      case 'message_delta':
        this.#take(events);
        this.#delta = this.#delta === undefined ? { text: data, value } : mergeDeltas(this.#delta.value, value);
        return '';
      case 'message_stop':
        this.#stop = data;
        return '';
      case 'content_block_start':
        this.#strange ||= isStrange(value['content_block']);
        return (
          this.#opening() +
          forward(type, this.#blocks.start(openBlock(data, value['content_block'], events), value['index']))
        );
      case 'error':
        return '';
      default:
        return events.some((event) => event.type === 'failure') ? '' : forward(type, data);
    }
  }

  end(closing: Closing): string {
    const held = this.#delta ?? { text: '{"type":"message_delta"}', value: {} };
    const stop = this.#stop ?? '{"type":"message_stop"}';
    return (
      this.#opening() +
      this.#blocks
        .close()
        .map((data) => forward('content_block_stop', data))
        .join('') +
      forward('message_delta', this.#closeDelta(held.text, held.value, closing)) +
      forward('message_stop', patchMembers(stop, scanMembers(stop), metadataEdits(closing)))
    );
  }

  failure(error: GatewayError, closing: Closing): string {
    return errorEvent(error, closing);
  }

  #take(events: readonly TurnEvent[]): void {
    for (const event of events) {
      if (event.type === 'usage') this.#usage = event.usage;
      else if (event.type === 'finish') this.#finish = event.finish;
    }
  }

  /** Starts the message when the upstream did not: SDKs fail on any other first event. */
  #opening(): string {
    return this.#started ? '' : this.#openMessage(NO_START, {});
  }

  #openMessage(data: string, value: Fields): string {
    if (this.#started) return '';
    this.#started = true;
    const message = fieldsOf(value['message']);
    this.#startReason = message;
    const outer = scanMembers(data);
    const inner = outer.findLast((member) => member.key === 'message');
    if (inner === undefined) return '';
    const text = data.slice(inner.valueStart, inner.valueEnd);
    const list = [...stampEdits(this.#stamp), ...missing(message, MESSAGE)];
    const record = patchUsage(inside(text, 'usage') ?? 'null', message['usage'], {}, this.#usage, true);
    list.push({ key: 'usage', json: record });
    const json = patchMembers(text, scanMembers(text), list);
    return forward('message_start', patchMembers(data, outer, [{ key: 'message', json }]));
  }

  #closeDelta(text: string, value: Fields, closing: Closing): string {
    const members = scanMembers(text);
    const usage = members.findLast((member) => member.key === 'usage');
    const record = usage === undefined ? 'null' : text.slice(usage.valueStart, usage.valueEnd);
    const list: Edit[] = [
      { key: 'usage', json: patchUsage(record, value['usage'], closing, closing.usage ?? this.#usage, false) },
    ];
    const { stop_reason: reason = null, stop_sequence: sequence = null } = this.#startReason;
    const delta = isFields(value['delta']) ? value['delta'] : { stop_reason: reason, stop_sequence: sequence };
    const told = isFields(value['delta']) ? inside(text, 'delta') : undefined;
    const written = told ?? stringifyJson(delta);
    const edits = missing(delta, DELTA);
    if (this.#finish !== undefined && !this.#strange) edits.push(...reasonEdits(this.#finish));
    list.push({ key: 'delta', json: patchMembers(written, scanMembers(written), edits) });
    return patchMembers(text, members, list);
  }
}

/** Whether a piece is null: it adds nothing, and SDKs would append the word "null". */
function addsNull({ partial_json: json, text, thinking }: Fields): boolean {
  return json === null || text === null || thinking === null;
}

const NO_START = '{"type":"message_start","message":{}}';

/** The event that opens a block, with missing members added. */
function openBlock(data: string, block: unknown, events: readonly TurnEvent[]): string {
  const text = isFields(block) ? inside(data, 'content_block') : undefined;
  if (text === undefined) return data;
  const started = events.find((event) => event.type === 'partStart');
  const json = completeBlock(text, block, started?.part.type === 'toolCall' ? started.part.id : undefined);
  return json === text ? data : patchMembers(data, scanMembers(data), [{ key: 'content_block', json }]);
}

/** The JSON text of one member. */
function inside(text: string, key: string): string | undefined {
  const member = scanMembers(text).findLast((one) => one.key === key);
  return member === undefined ? undefined : text.slice(member.valueStart, member.valueEnd);
}

/** Merges two closing deltas; members of the later one win. */
function mergeDeltas(first: Fields, second: Fields): { text: string; value: Fields } {
  const value = {
    ...first,
    ...second,
    delta: mergeUsage(fieldsOf(first['delta']), second['delta']),
    usage: mergeUsage(fieldsOf(first['usage']), second['usage']),
  };
  const text = stringifyJson(value);
  return { text, value: fieldsOf(parseJson(text)) };
}

/** An event unchanged. Each line of multi-line data gets its own `data:`. */
function forward(name: string, data: string): string {
  const lines = data.includes('\n') ? data.replaceAll('\n', '\ndata: ') : data;
  return `event: ${name}\ndata: ${lines}\n\n`;
}

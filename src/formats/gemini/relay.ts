/**
 * Relay for a service of the client's own format: the original text passes with a few members edited. Everything else
 * (ratings, grounding, unknown members, number literals, white space) arrives as it was sent.
 */
import type { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, parseJson, scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import type { TurnEvent, Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../conversation/fields.ts';
import type { Closing, EncodeTarget, Relay, RelayedAnswer, RelayStream, Stamp } from '../conversation/format.ts';
import type { Losses } from '../conversation/losses.ts';
import { memberHoldsNull, withoutNullKeywords } from '../conversation/plain-schema.ts';
import { OWN_MEMBERS } from './decode.ts';
import { encodeReply, metadataOf } from './encode-reply.ts';
import { encodeUsage } from './encode-usage.ts';
import { errorEvent } from './encoder.ts';
import { givenName, listMember, member } from './names.ts';
import { contentsEdit } from './relay-contents.ts';

export const relay: Relay = {
  edits,
  reply,
  stream: (stamp) => new GeminiRelayStream(stamp),
  tierMember: 'serviceTier',
};

/** Edits of the client's body; the model and streaming are in the path. */
function edits(document: JsonDocument, target: EncodeTarget, losses?: Losses): Edit[] {
  const body = document.structure;
  const list: Edit[] = OWN_MEMBERS.flatMap((key) => (key in body ? [{ key, json: undefined }] : []));
  if ('labels' in body && target.dialect.gemini?.labels !== true) {
    list.push({ key: 'labels', json: undefined });
    losses?.drop('labels', 'the provider has no labels');
  }
  list.push(...capEdit(document, target), ...contentsEdit(document, target), ...toolsEdit(document));
  return list;
}

/** Lowers the output cap where the gateway or the endpoint imposes a lower one. */
function capEdit(document: JsonDocument, { capOutputTokens, maxOutputTokens }: EncodeTarget): Edit[] {
  const key = givenName(document.structure, 'generationConfig');
  const asked = member(fieldsOf(document.structure[key]), 'maxOutputTokens');
  const given = typeof asked === 'number' ? asked : Number.POSITIVE_INFINITY;
  if (asked === undefined && capOutputTokens === undefined) return [];
  const most = Math.min(capOutputTokens ?? Number.POSITIVE_INFINITY, maxOutputTokens ?? Number.POSITIVE_INFINITY);
  if (given <= most) return [];
  const config = fieldsOf(document.exact[key]);
  const cap = Math.max(1, most);
  return [{ key, json: stringifyJson({ ...config, [givenName(config, 'maxOutputTokens')]: cap }) }];
}

/** Null keywords of schemas are left out, as in the other formats. */
function toolsEdit(document: JsonDocument): Edit[] {
  if (!memberHoldsNull(document, 'tools')) return [];
  const cleaned = ['parameters', 'parametersJsonSchema', 'parameters_json_schema'];
  const withoutNulls = (declaration: unknown) => {
    const given = fieldsOf(declaration);
    const schemas = cleaned.flatMap((name) =>
      isFields(given[name]) ? [[name, withoutNullKeywords(given[name])]] : [],
    );
    return { ...given, ...Object.fromEntries(schemas) };
  };
  const tools = listMember(document.exact, 'tools', 'tools').map((value) => {
    const tool = fieldsOf(value);
    const key = givenName(tool, 'functionDeclarations');
    return key in tool ? { ...tool, [key]: listMember(tool, key, key).map(withoutNulls) } : tool;
  });
  return [{ key: 'tools', json: stringifyJson(tools) }];
}

/** A service may answer with a list, as the streaming method does; clients of the other one read an object. */
function reply(answer: RelayedAnswer): string {
  const { text, value, turn, stamp, closing } = answer;
  if (Array.isArray(value)) return stringifyJson(encodeReply(turn, stamp, closing));
  return patched(text, stamp, usageEdit(answer), closing);
}

/** The text of a reply or event with the gateway's members in it. */
function patched(text: string, stamp: Stamp, more: readonly Edit[], closing: Closing = {}): string {
  const list: Edit[] = [
    { key: 'modelVersion', json: JSON.stringify(stamp.model) },
    { key: 'responseId', json: JSON.stringify(stamp.id) },
    { key: 'provider', json: JSON.stringify(stamp.provider) },
    ...more,
    ...Object.entries(metadataOf(closing)).map(([key, value]) => ({ key, json: JSON.stringify(value) })),
  ];
  return patchMembers(text, scanMembers(text), list);
}

/** A service's record stays as it is written, with our cost in it; a missing one is added. */
function usageEdit({ text, value, turn, closing }: Pick<RelayedAnswer, 'text' | 'value' | 'turn' | 'closing'>): Edit[] {
  return usageEdits(text, value, closing.usage ?? turn.usage, closing);
}

const COST_MEMBERS = ['cost', 'is_byok', 'cost_details'] as const;

function usageEdits(text: string, value: unknown, usage: Usage | undefined, closing: Closing): Edit[] {
  const record = fieldsOf(value)['usageMetadata'];
  if (!isFields(record)) {
    const json = stringifyJson(encodeUsage(usage, closing));
    return json === '{}' ? [] : [{ key: 'usageMetadata', json }];
  }
  const cost = encodeUsage(undefined, closing);
  const found = scanMembers(text).findLast(({ key }) => key === 'usageMetadata')!;
  const written = text.slice(found.valueStart, found.valueEnd);
  // A service's own cost is never passed on.
  const list = COST_MEMBERS.flatMap((key) =>
    cost[key] === undefined && record[key] === undefined ? [] : [{ key, json: JSON.stringify(cost[key]) }],
  );
  return [{ key: 'usageMetadata', json: patchMembers(written, scanMembers(written), list) }];
}

interface HeldEvent {
  text: string;
  value: Fields;
}

/**
 * Relays a stream. The format has no end marker: the last event is the one after which every candidate has finished, so
 * it is held until the cost is known.
 */
class GeminiRelayStream implements RelayStream {
  readonly #stamp: Stamp;
  readonly #open = new Set<number>();
  #held: HeldEvent | undefined;
  #usage: Usage | undefined;

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  event(_name: string, data: string, value: unknown, events: readonly TurnEvent[]): string {
    if (!isFields(value) || isFields(value['error'])) return '';
    if (events.some(({ type }) => type === 'failure')) return '';
    for (const event of events) if (event.type === 'usage') this.#usage = event.usage;
    this.#note(value);
    const before = this.#flush();
    if (this.#open.size > 0) return before + this.#stamped(data);
    this.#held = { text: data, value };
    return before;
  }

  end(closing: Closing): string {
    const { text, value } = this.#held ?? { text: '{}', value: {} };
    const usage = usageEdits(text, value, closing.usage ?? this.#usage, closing);
    return framed(patched(text, this.#stamp, usage, closing));
  }

  /** Sends the held event, but not the finish reasons in it. */
  failure(error: GatewayError, closing: Closing): string {
    const held = this.#held;
    this.#held = undefined;
    return (held === undefined ? '' : this.#stamped(unfinished(held.text))) + errorEvent(error, closing);
  }

  #note(value: Fields): void {
    for (const entry of listOf(value['candidates'])) {
      const { index, finishReason } = fieldsOf(entry);
      const place = typeof index === 'number' ? index : 0;
      if (typeof finishReason === 'string') this.#open.delete(place);
      else this.#open.add(place);
    }
  }

  /** An event after the supposed last one. */
  #flush(): string {
    const held = this.#held;
    this.#held = undefined;
    return held === undefined ? '' : this.#stamped(held.text);
  }

  #stamped(text: string): string {
    return framed(patched(text, this.#stamp, []));
  }
}

/** Line breaks are white space: texts have them escaped. */
function framed(text: string): string {
  return `data: ${text.includes('\n') ? text.replaceAll('\n', ' ') : text}\n\n`;
}

function unfinished(text: string): string {
  const value = fieldsOf(parseJson(text));
  const candidates = listOf(value['candidates']).map((entry) => {
    const { finishReason: _, ...others } = fieldsOf(entry);
    return others;
  });
  const json = candidates.length === 0 ? undefined : stringifyJson(candidates);
  return patchMembers(text, scanMembers(text), [{ key: 'candidates', json }]);
}

/**
 * Turns one request into the body for one endpoint, and the response into the client's format: relayed with byte edits
 * if both sides speak the same format ([decision 001](../../docs/decisions/001-canonical-conversation-and-relay.md)),
 * otherwise translated through the conversation. Pure.
 */
import type { GatewayError } from '../../base/errors.ts';
import { applyEdits, type Edit, type JsonDocument, parseJson, stringifyJson } from '../../base/json.ts';
import { needsFunctions, withFunctions } from '../../formats/client-tools/index.ts';
import { CallIds, distinctDecoder, distinctTurn, withDistinctCalls } from '../../formats/conversation/call-ids.ts';
import type { Conversation, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { isFields } from '../../formats/conversation/fields.ts';
import type {
  Closing,
  Dialect,
  EncodeTarget,
  ServedFormat,
  SpokenFormat,
  Stamp,
  StreamEncoder,
  TurnDecoder,
} from '../../formats/conversation/format.ts';
import { type ThinkingMemory, withKeptThinking } from '../../formats/conversation/kept-thinking.ts';
import { Losses, Uncarried } from '../../formats/conversation/losses.ts';
import { collect, eventsOf } from '../../formats/conversation/replay.ts';
import { hasLongNames, withShortNames } from '../../formats/conversation/short-names.ts';
import { Portable, Rounds } from '../../formats/deferred/index.ts';
import { withOutputTool } from '../../formats/output-tool/index.ts';
import { type Fetched, withMedia } from '../media/remote.ts';
import { Presentation, type Shown } from './presentation.ts';

/** Writes a streamed answer, relayed or translated, with the same three calls as a `StreamEncoder`. */
export interface StreamWriter {
  event(name: string, data: string, value: unknown, events: readonly TurnEvent[]): string;
  end(closing: Closing): string;
  failure(error: GatewayError, closing: Closing): string;
}

/** A whole answer as read; `write` renders it for the client once its usage and cost are known. */
export interface WholeReply {
  turn: Turn;
  write(stamp: Stamp, closing: Closing): string;
}

/** One request prepared for endpoints of one spoken format; created per attempt. */
export interface Passage {
  readonly relayed: boolean;
  readonly body: Buffer | string;
  readonly losses: Losses;
  /** `seed` is for generated ids, as in `SpokenFormat.decoder`. */
  decoder(seed: string): TurnDecoder;
  writer(stamp: Stamp): StreamWriter;
  /** Reads a whole answer. A failure reported with status 200 is returned as `failure`. */
  readWhole(text: string, seed: string): WholeReply | { failure: UpstreamFailure };
  /** The body of the next upstream call of the answer, undefined if there is none. Absent: one call is enough. */
  again?(): string | undefined;
}

const NONE: Fetched = new Map();

/** The decoded request, shared by all endpoints that are tried. */
export class Translation {
  readonly format: ServedFormat;
  readonly document: JsonDocument;
  readonly #memory: ThinkingMemory | undefined;
  #conversation: Conversation | undefined;

  /** @param memory stores reasoning, for a format whose clients cannot carry it */
  constructor(format: ServedFormat, document: JsonDocument, memory?: ThinkingMemory) {
    this.format = format;
    this.document = document;
    this.#memory = memory;
  }

  get conversation(): Conversation {
    if (this.#conversation === undefined) {
      const decoded = this.format.decode(this.document.exact);
      this.#conversation = this.#memory === undefined ? decoded : withKeptThinking(decoded, this.#memory);
    }
    return this.#conversation;
  }

  /**
   * @param media fetched for this endpoint; if there are any, the request is translated even into its own format
   * @param outputByTool sends `response_format` as a tool (`formats/output-tool`)
   * @throws Uncarried when the spoken format cannot carry the request
   */
  toward(spoken: SpokenFormat, target: EncodeTarget, media: Fetched = NONE, outputByTool = false): Passage {
    if (spoken.id !== this.format.id) this.#refuseOwnFeatures();
    const deferred = isGiven(this.document.structure['deferred_tools']);
    this.#checkThread(spoken, target, deferred);
    const shows = this.#hides && spoken.showsHiddenReasoning?.(target.dialect) === true;
    const ids = new CallIds(() => new Set(this.format.callIds(this.document.structure)));
    const relays = spoken.id === this.format.id && media.size === 0 && !deferred && !outputByTool && !shows;
    if (relays && !this.#needsFunctions(spoken, target) && !hasLongNames(this.document.structure['tools'], spoken.id)) {
      return new RelayPassage(this.format, spoken, this.document, target, ids);
    }
    const tool = outputByTool ? withOutputTool(this.conversation) : undefined;
    if (outputByTool && tool === undefined) {
      throw new Uncarried('response_format', 'this output format cannot be replaced by a tool call');
    }
    const losses = new Losses();
    const fetched = withMedia(tool?.conversation ?? this.conversation, media);
    const { conversation: portable, directory } = withFunctions(fetched, spoken, target, losses);
    const conversation = withDistinctCalls(portable);
    const shown = { hides: conversation.reasoning?.exclude === true, tool, directory, ids, memory: this.#memory };
    return new (deferred ? DeferredPassage : TranslatedPassage)(
      this.format,
      spoken,
      conversation,
      target,
      losses,
      shown,
    );
  }

  /** Whether the request has tools that the upstream does not know in its own format, such as a namespace. */
  #needsFunctions(spoken: SpokenFormat, target: EncodeTarget): boolean {
    const native = spoken.relayedTools?.(target.dialect) ?? 'all';
    if (native === 'all') return false;
    const { tools, input } = this.document.structure;
    return needsFunctions(tools, input, native);
  }

  /** Whether the client hides reasoning (`reasoning.exclude`, or the older `include_reasoning`). */
  get #hides(): boolean {
    const { reasoning, include_reasoning: older } = this.document.structure;
    const exclude = isFields(reasoning) ? reasoning['exclude'] : undefined;
    return exclude === true || (older === false && exclude !== false);
  }

  /** A thread is stored by its service. On any other endpoint the request would lack the earlier messages. */
  #checkThread(spoken: SpokenFormat, { dialect }: EncodeTarget, deferred: boolean): void {
    const { id, threadMember } = this.format;
    if (threadMember === undefined || !isGiven(this.document.structure[threadMember])) return;
    if (spoken.id !== id || spoken.keepsThreads?.(dialect) !== true) {
      throw new Uncarried('thread', 'the endpoint does not support message threads');
    }
    if (deferred) throw new Uncarried('thread', 'deferred tools need several upstream calls for one answer');
  }

  #refuseOwnFeatures(): void {
    const { ownFeatures = [], id } = this.format;
    const feature = ownFeatures.find((name) => isGiven(this.document.structure[name]));
    if (feature !== undefined) throw new Uncarried(feature, `only the ${id} format supports it`);
  }
}

/** Neither null nor an empty list. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

class RelayPassage implements Passage {
  readonly relayed = true;
  readonly body: Buffer;
  readonly losses = new Losses();
  readonly #format: ServedFormat;
  readonly #spoken: SpokenFormat;
  readonly #dialect: Dialect;
  readonly #ids: CallIds;

  constructor(format: ServedFormat, spoken: SpokenFormat, document: JsonDocument, target: EncodeTarget, ids: CallIds) {
    this.#format = format;
    this.#ids = ids;
    this.#spoken = spoken;
    this.#dialect = target.dialect;
    this.body = applyEdits(
      document,
      withTier(format, format.relay.edits(document, target, this.losses), document, target),
    );
  }

  decoder(seed: string): TurnDecoder {
    return distinctDecoder(this.#spoken.decoder(this.#dialect, seed), this.#ids);
  }

  writer(stamp: Stamp): StreamWriter {
    return this.#format.relay.stream(stamp, this.#dialect);
  }

  readWhole(text: string, seed: string): WholeReply | { failure: UpstreamFailure } {
    const read = readTurn(text, this.#spoken, this.#dialect, seed);
    if ('failure' in read) return read;
    const { value } = read;
    const turn = distinctTurn(read.turn, this.#ids);
    const write: WholeReply['write'] = (stamp, closing) =>
      this.#format.relay.reply(text, value, turn, stamp, closing, this.#dialect);
    return { turn, write };
  }
}

class TranslatedPassage implements Passage {
  readonly relayed = false;
  readonly body: string;
  readonly losses: Losses;
  readonly #format: ServedFormat;
  readonly #spoken: SpokenFormat;
  readonly #dialect: Dialect;
  readonly #presentation: Presentation;

  constructor(
    format: ServedFormat,
    spoken: SpokenFormat,
    conversation: Conversation,
    target: EncodeTarget,
    losses: Losses,
    shown: Shown,
  ) {
    this.losses = losses;
    this.#format = format;
    this.#spoken = spoken;
    this.#dialect = target.dialect;
    const named = withShortNames(conversation, spoken.id);
    this.#presentation = new Presentation(shown, named.own);
    this.body = stringifyJson(spoken.encode(inTier(named.conversation, target), target, this.losses));
  }

  decoder(seed: string): TurnDecoder {
    return this.#presentation.decoder(this.#spoken.decoder(this.#dialect, seed));
  }

  writer(stamp: Stamp): StreamWriter {
    return writerFromEvents(this.#format, stamp);
  }

  readWhole(text: string, seed: string): WholeReply | { failure: UpstreamFailure } {
    const read = readTurn(text, this.#spoken, this.#dialect, seed);
    return 'failure' in read ? read : wholeFrom(this.#format, this.#presentation.turn(read.turn));
  }
}

/** A translation with one upstream call for each search for tools. */
class DeferredPassage implements Passage {
  readonly relayed = false;
  readonly body: string;
  readonly losses: Losses;
  readonly #format: ServedFormat;
  readonly #spoken: SpokenFormat;
  readonly #target: EncodeTarget;
  readonly #rounds: Rounds;
  /** Hidden reasoning is still sent back to the model between rounds. */
  readonly #presentation: Presentation;

  constructor(
    format: ServedFormat,
    spoken: SpokenFormat,
    conversation: Conversation,
    target: EncodeTarget,
    losses: Losses,
    shown: Shown,
  ) {
    this.losses = losses;
    if ((conversation.choices ?? 1) > 1) throw new Uncarried('n', 'deferred tools support a single choice only');
    this.#format = format;
    this.#spoken = spoken;
    this.#target = target;
    this.#presentation = new Presentation(shown);
    const portable = new Portable(
      inTier(conversation, target),
      conversation.deferred!,
      target.compileRegex!,
      format.searchTrace,
    );
    this.#rounds = new Rounds(portable, format.searchTrace, outputLeft(conversation, target));
    this.body = this.#encode();
  }

  #encode(): string {
    const { conversation, leftTokens } = this.#rounds;
    const target = leftTokens === undefined ? this.#target : { ...this.#target, capOutputTokens: leftTokens };
    return stringifyJson(this.#spoken.encode(conversation, target, this.losses));
  }

  again(): string | undefined {
    return this.#rounds.takeAgain() ? this.#encode() : undefined;
  }

  decoder(seed: string): TurnDecoder {
    const spoken = this.#spoken.decoder(this.#target.dialect, this.#seed(seed));
    return this.#presentation.decoder(this.#rounds.decoder(spoken));
  }

  writer(stamp: Stamp): StreamWriter {
    return writerFromEvents(this.#format, stamp);
  }

  readWhole(text: string, seed: string): WholeReply | { failure: UpstreamFailure } {
    const read = readTurn(text, this.#spoken, this.#target.dialect, this.#seed(seed));
    if ('failure' in read) return read;
    const gathered = this.#rounds.whole(read.turn);
    return 'failure' in gathered ? gathered : wholeFrom(this.#format, this.#presentation.turn(gathered.turn));
  }

  /** The round's number keeps ids generated in one call from recurring in the next. */
  #seed(seed: string): string {
    return `${seed}-${this.#rounds.number}`;
  }
}

/** The output limit of all calls together; undefined without a limit. */
function outputLeft(
  { settings }: Conversation,
  { capOutputTokens, maxOutputTokens }: EncodeTarget,
): number | undefined {
  const limits = [settings.maxOutputTokens, capOutputTokens, maxOutputTokens ?? undefined];
  const given = limits.filter((limit) => limit !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}

/** `value` is the parsed response. */
function readTurn(
  text: string,
  spoken: SpokenFormat,
  dialect: Dialect,
  seed: string,
): { value: unknown; turn: Turn } | { failure: UpstreamFailure } {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { failure: notJson(text) };
  }
  const reply = spoken.decodeReply(value, dialect, seed);
  return 'failure' in reply ? reply : { value, turn: reply.turn };
}

class TranslatedStream implements StreamWriter {
  readonly #encoder: StreamEncoder;

  constructor(encoder: StreamEncoder) {
    this.#encoder = encoder;
  }

  event(_name: string, _data: string, _value: unknown, events: readonly TurnEvent[]): string {
    let text = '';
    for (const event of events) text += this.#encoder.event(event);
    return text;
  }

  end(closing: Closing): string {
    return this.#encoder.end(closing);
  }

  failure(error: GatewayError, closing: Closing): string {
    return this.#encoder.failure(error, closing);
  }
}

/** Writes a streamed answer from its events alone, whatever format the upstream speaks. */
export function writerFromEvents(format: ServedFormat, stamp: Stamp): StreamWriter {
  return new TranslatedStream(format.encoder(stamp));
}

/** Renders a whole answer from its turn alone. */
export function wholeFrom(format: ServedFormat, turn: Turn): WholeReply {
  return { turn, write: (stamp, closing) => stringifyJson(format.encodeReply(turn, stamp, closing)) };
}

/** Writes a whole answer as a stream, for an upstream that did not stream although it should. */
export function streamWhole(format: ServedFormat, turn: Turn, stamp: Stamp): { writer: StreamWriter; text: string } {
  const writer = writerFromEvents(format, stamp);
  return { writer, text: writer.event('', '', undefined, eventsOf(turn)) };
}

/** Writes a stream as a whole answer, for an upstream that streamed although it should not. */
export function gatherWhole(format: ServedFormat, events: readonly TurnEvent[]): WholeReply {
  return wholeFrom(format, collect(events));
}

function notJson(text: string): UpstreamFailure {
  const shown = text.slice(0, 200);
  return { kind: 'malformed', status: null, message: 'the upstream response is not JSON', raw: shown };
}

/** Replaces the client's tier by the endpoint's. A format's own member for a tier is passed to the upstream. */
function withTier(
  { relay: { tierWord } }: ServedFormat,
  edits: Edit[],
  { structure }: JsonDocument,
  { serviceTier }: EncodeTarget,
): Edit[] {
  if (serviceTier === undefined) return edits;
  const worded = tierWord !== undefined && structure[tierWord.key] === tierWord.value;
  if (worded && serviceTier !== null && !(TIER_MEMBER in structure)) return edits;
  const list = edits.filter(({ key }) => key !== TIER_MEMBER);
  if (worded) list.push({ key: tierWord.key, json: undefined });
  if (serviceTier !== null) list.push({ key: TIER_MEMBER, json: JSON.stringify(serviceTier) });
  else if (TIER_MEMBER in structure) list.push({ key: TIER_MEMBER, json: undefined });
  return list;
}

function inTier(conversation: Conversation, { serviceTier }: EncodeTarget): Conversation {
  if (serviceTier === undefined) return conversation;
  const { serviceTier: _wanted, ...settings } = conversation.settings;
  return { ...conversation, settings: serviceTier === null ? settings : { ...settings, serviceTier } };
}

/** The member's name in every format whose requests are relayed. */
const TIER_MEMBER = 'service_tier';

/**
 * Turns one request into the body for one endpoint, and the response into the client's format: relayed with byte edits
 * if both sides speak the same format ([decision 001](../../docs/decisions/001-canonical-conversation-and-relay.md)),
 * otherwise translated through the conversation. Pure.
 */
import type { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import { needsFunctions, withFunctions } from '../../formats/client-tools/index.ts';
import { CallIds, withDistinctCalls } from '../../formats/conversation/call-ids.ts';
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
import { type Passage, readTurn, type StreamWriter, type WholeReply } from './passage.ts';
import { Presentation, type Shown } from './presentation.ts';
import { RelayPassage } from './relay-passage.ts';

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
   * @param unread nothing reads the answer but its client
   * @throws Uncarried when the spoken format cannot carry the request
   */
  toward(
    spoken: SpokenFormat,
    target: EncodeTarget,
    media: Fetched = NONE,
    outputByTool = false,
    unread = false,
  ): Passage {
    if (spoken.id !== this.format.id) this.#refuseOwnFeatures();
    const deferred = isGiven(this.document.structure['deferred_tools']);
    this.#checkThread(spoken, target, deferred);
    const shows = this.#hides && spoken.showsHiddenReasoning?.(target.dialect) === true;
    const ids = new CallIds(() => new Set(this.format.callIds(this.document.structure)));
    const relays = spoken.id === this.format.id && media.size === 0 && !deferred && !outputByTool && !shows;
    if (relays && !this.#needsFunctions(spoken, target) && !hasLongNames(this.document.structure['tools'], spoken.id)) {
      return new RelayPassage(this.format, spoken, this.document, target, ids, unread);
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

class TranslatedPassage implements Passage {
  readonly relayed = false;
  readonly encoding = 'utf8';
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

  readWhole(body: Buffer, seed: string): WholeReply | { failure: UpstreamFailure } {
    const read = readTurn(body.toString('utf8'), this.#spoken, this.#dialect, seed);
    return 'failure' in read ? read : wholeFrom(this.#format, this.#presentation.turn(read.turn));
  }
}

/** A translation with one upstream call for each search for tools. */
class DeferredPassage implements Passage {
  readonly relayed = false;
  readonly encoding = 'utf8';
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

  readWhole(body: Buffer, seed: string): WholeReply | { failure: UpstreamFailure } {
    const read = readTurn(body.toString('utf8'), this.#spoken, this.#target.dialect, this.#seed(seed));
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

function inTier(conversation: Conversation, { serviceTier }: EncodeTarget): Conversation {
  if (serviceTier === undefined) return conversation;
  const { serviceTier: _wanted, ...settings } = conversation.settings;
  return { ...conversation, settings: serviceTier === null ? settings : { ...settings, serviceTier } };
}

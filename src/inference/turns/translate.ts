/**
 * Turns one request into the body for one endpoint, and the response into the client's format: relayed with byte edits
 * if both sides speak the same format ([decision 001](../../docs/decisions/001-canonical-conversation-and-relay.md)),
 * otherwise translated through the conversation. Pure.
 */
import type { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import {
  adapt,
  CallIds,
  choosesAmong,
  hasLongNames,
  hideReasoning,
  keepThinking,
  needsFunctions,
  type Restoring,
  type ThinkingMemory,
  TURN_ADAPTERS,
  together,
  withKeptThinking,
} from '../../formats/adapters/index.ts';
import type { Conversation, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { isFields, isPresent } from '../../formats/conversation/fields.ts';
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
import { Losses, Uncarried } from '../../formats/conversation/losses.ts';
import { eventsOf } from '../../formats/conversation/replay.ts';
import { type Fetched, withMedia } from '../media/remote.ts';
import { type Passage, readTurn, type StreamWriter, type WholeReply } from './passage.ts';
import { RelayPassage } from './relay-passage.ts';

/** One turn of an answer that takes several (`turn-loop.ts`). */
export interface LoopTurn {
  conversation: Conversation;
  /** Ids of the calls in the answer's earlier turns. */
  callIds: ReadonlySet<string>;
}

interface PassageOptions {
  /** Fetched for this endpoint; if there are any, the request is translated even into its own format. */
  media?: Fetched | undefined;
  /** Sends `response_format` as a tool (`formats/adapters/output-tool.ts`). */
  outputByTool?: boolean;
  /** Absent for the usual answer of one turn. */
  turn?: LoopTurn | undefined;
  /** Nothing reads the answer but its client. */
  unread?: boolean;
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

  /** @throws Uncarried when the spoken format cannot carry the request */
  passage(spoken: SpokenFormat, target: EncodeTarget, options: PassageOptions = {}): Passage {
    const { media = NONE, outputByTool = false, turn, unread = false } = options;
    if (spoken.id !== this.format.id) this.#refuseOwnFeatures();
    this.#checkThread(spoken, target, turn !== undefined);
    const hides = this.#hides && spoken.showsHiddenReasoning?.(target.dialect) === true;
    const callIds = new CallIds(() => idsIn(this.format.callIds(this.document.structure), turn?.callIds));
    const relays = spoken.id === this.format.id && media.size === 0 && turn === undefined && !outputByTool && !hides;
    if (relays && !this.#needsAdapters(spoken, target) && !hasLongNames(this.document.structure['tools'], spoken)) {
      return new RelayPassage(this.format, spoken, this.document, target, callIds, unread);
    }
    const losses = new Losses();
    const conversation = withMedia(turn?.conversation ?? this.conversation, media);
    const adapted = adapt(conversation, TURN_ADAPTERS, { spoken, target, losses, outputByTool, callIds });
    // The loop shows the answer itself: the model gets its hidden reasoning back between turns.
    const presented = turn === undefined ? this.presentation() : undefined;
    const restorings = [presented, adapted.restoring].filter((each) => each !== undefined);
    const restoring = together(restorings);
    return new TranslatedPassage({
      format: this.format,
      spoken,
      dialect: target.dialect,
      losses,
      body: stringifyJson(spoken.encode(adapted.conversation, target, losses)),
      restoring,
    });
  }

  /** Changes a translated answer on its last step to the client. */
  presentation(): Restoring | undefined {
    const hiding = this.conversation.reasoning?.exclude === true ? hideReasoning : undefined;
    return this.#memory === undefined ? hiding : keepThinking(this.#memory, hiding);
  }

  /** Whether the request has tools, or a choice, that the upstream does not know in its own format, such as a namespace. */
  #needsAdapters(spoken: SpokenFormat, target: EncodeTarget): boolean {
    const { tool_choice: choice } = this.document.structure;
    if (choosesAmong(choice) && spoken.choosesAmong?.(target.dialect) !== true) return true;
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
  #checkThread(spoken: SpokenFormat, { dialect }: EncodeTarget, loops: boolean): void {
    const { id, threadMember } = this.format;
    if (threadMember === undefined || !isPresent(this.document.structure[threadMember])) return;
    if (spoken.id !== id || spoken.keepsThreads?.(dialect) !== true) {
      throw new Uncarried('thread', 'the endpoint does not support message threads');
    }
    if (loops) throw new Uncarried('thread', 'tools that the gateway runs need several upstream calls for one answer');
  }

  #refuseOwnFeatures(): void {
    const { ownFeatures = [], id } = this.format;
    const content = this.format.ownContent?.(this.document.structure);
    if (content !== undefined) throw new Uncarried(content, `only the ${id} format can read it`);
    const feature = ownFeatures.find((name) => isPresent(this.document.structure[name]));
    if (feature !== undefined) throw new Uncarried(feature, `only the ${id} format supports it`);
  }
}

function idsIn(history: readonly string[], more: ReadonlySet<string> | undefined): ReadonlySet<string> {
  const ids = new Set(history);
  for (const id of more ?? []) ids.add(id);
  return ids;
}

interface Translated {
  format: ServedFormat;
  spoken: SpokenFormat;
  dialect: Dialect;
  losses: Losses;
  body: string;
  /** Undoes the adapters' changes in the answer. */
  restoring: Restoring | undefined;
}

class TranslatedPassage implements Passage {
  readonly relayed = false;
  readonly encoding = 'utf8';
  readonly #translated: Translated;

  constructor(translated: Translated) {
    this.#translated = translated;
  }

  get body(): string {
    return this.#translated.body;
  }

  get losses(): Losses {
    return this.#translated.losses;
  }

  decoder(seed: string): TurnDecoder {
    const { spoken, dialect, restoring } = this.#translated;
    const decoder = spoken.decoder(dialect, seed);
    return restoring === undefined ? decoder : restoring.decoder(decoder);
  }

  writer(stamp: Stamp): StreamWriter {
    return writerFromEvents(this.#translated.format, stamp);
  }

  readWhole(body: Buffer, seed: string): WholeReply | { failure: UpstreamFailure } {
    const { format, spoken, dialect, restoring } = this.#translated;
    const read = readTurn(body.toString('utf8'), spoken, dialect, seed);
    if ('failure' in read) return read;
    return wholeFrom(format, restoring === undefined ? read.turn : restoring.turn(read.turn));
  }
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

/**
 * Joins the turns of one answer: the client sees one start, parts numbered in one row, the sum of all usage, and one
 * end. Calls of the gateway's tools are withheld until the turn is over. Pure.
 */
import type {
  Finish,
  OpaquePart,
  Part,
  ToolCallPart,
  Turn,
  TurnEvent,
  Usage,
} from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { collect } from '../../formats/conversation/replay.ts';
import { addUsage } from '../../formats/conversation/usage.ts';
import type { TurnJudge } from '../plugins/plugin.ts';
import type { GatewayTools } from './gateway-tools.ts';

/** Limit for the arguments of one call of a gateway tool, in UTF-16 units. */
const MAX_ARGUMENTS_LENGTH = 4 * 1024 * 1024;

/** Where the next turn continues. */
export interface Joint {
  started: boolean;
  nextIndex: number;
  usage: Usage | undefined;
  /** Parts before the first of the answer, which the client has not seen yet. */
  prelude?: readonly Part[] | undefined;
}

export const FIRST: Joint = { started: false, nextIndex: 0, usage: undefined };

export class JoinedTurn {
  readonly #tools: Pick<GatewayTools, 'claims' | 'cites' | 'ownCalls' | 'resumes'>;
  readonly #judge: Pick<TurnJudge, 'withholds'> | undefined;
  #started: boolean;
  #nextIndex: number;
  readonly #earlier: Usage | undefined;
  #prelude: readonly Part[];
  /** All events as the upstream sent them, for the next turn. */
  readonly #events: TurnEvent[] = [];
  /** Part indexes of the turn, mapped to those of the answer. */
  readonly #indexes = new Map<number, number>();
  readonly #held = new Map<number, ToolCallPart>();
  /** Of open text parts that may have citations. */
  readonly #texts = new Map<number, string>();
  #finish: Finish | undefined;
  usage: Usage | undefined;
  /** UTF-8 bytes of texts and arguments, a bound for the tokens where no usage is reported. */
  writtenBytes = 0;
  /** Calls of tools that the client runs. */
  clientCalls = 0;
  /** Why the turn cannot be used. */
  failure: UpstreamFailure | undefined;
  #ended = false;

  constructor(
    { started, nextIndex, usage, prelude = [] }: Joint,
    tools: Pick<GatewayTools, 'claims' | 'cites' | 'ownCalls' | 'resumes'>,
    judge?: Pick<TurnJudge, 'withholds'>,
  ) {
    this.#started = started;
    this.#nextIndex = nextIndex;
    this.#earlier = usage;
    this.#prelude = prelude;
    this.#tools = tools;
    this.#judge = judge;
  }

  /** The turn is judged before the answer can continue or end. */
  get judged(): boolean {
    return this.#judge !== undefined;
  }

  /** The client sees nothing of the turn until then. */
  get withheld(): boolean {
    return this.#judge?.withholds === true;
  }

  /** The events for the client. The end is withheld while the gateway has calls to run. */
  take(events: readonly TurnEvent[]): TurnEvent[] {
    const out: TurnEvent[] = [];
    for (const event of events) {
      // Deltas are added to copies of the part.
      this.#events.push(event.type === 'partStart' ? { ...event, part: { ...event.part } } : event);
      this.#one(event, out);
    }
    return out;
  }

  /**
   * The calls that the gateway has to run before the answer can continue; undefined until the turn is over, or if there
   * are none. An empty list: nothing has to run, but the turn was paused or judged, so it is not the last.
   */
  get calls(): readonly ToolCallPart[] | undefined {
    return this.#ended && this.#waits ? [...this.#held.values()] : undefined;
  }

  get #waits(): boolean {
    return this.#held.size > 0 || this.paused || this.judged;
  }

  /** The upstream only waits for its turn to be sent back. */
  get paused(): boolean {
    const waits = this.#finish?.paused === true && this.#tools.resumes === true;
    return waits && this.#held.size === 0 && this.clientCalls === 0;
  }

  /** The model's whole turn. */
  get whole(): Turn {
    return collect(this.#events);
  }

  get joint(): Joint {
    return { started: this.#started, nextIndex: this.#nextIndex, usage: this.#total };
  }

  /** Complete parts that the gateway adds after the turn. */
  partEvents(parts: readonly Part[]): TurnEvent[] {
    return parts.flatMap((part): TurnEvent[] => {
      const index = this.#nextIndex++;
      return [
        { type: 'partStart', choice: 0, index, part },
        { type: 'partStop', choice: 0, index },
      ];
    });
  }

  /** A part that the gateway completes later. */
  begin(part: OpaquePart): { events: TurnEvent[]; index: number } {
    const index = this.#nextIndex++;
    return { events: [{ type: 'partStart', choice: 0, index, part }], index };
  }

  /** Completes a part that `begin` began. @param value replaces its value */
  complete(index: number, value: unknown): TurnEvent[] {
    return [
      { type: 'partDelta', choice: 0, index, delta: { value } },
      { type: 'partStop', choice: 0, index },
    ];
  }

  /** The end of the answer. @param unified replaces the turn's own finish reason */
  end(unified?: Finish['unified']): TurnEvent[] {
    const finish: Finish = this.#finish ?? { unified: 'stop', native: null };
    return [
      { type: 'finish', choice: 0, finish: unified === undefined ? finish : { ...finish, unified, native: null } },
      { type: 'end' },
    ];
  }

  get #total(): Usage | undefined {
    return this.#earlier === undefined ? this.usage : addUsage(this.#earlier, this.usage);
  }

  #one(event: TurnEvent, out: TurnEvent[]): void {
    switch (event.type) {
      case 'start':
        if (!this.#started) out.push(event);
        this.#started = true;
        break;
      case 'partStart':
        this.#startPart(event, out);
        break;
      case 'partDelta':
        this.#delta(event, out);
        break;
      case 'partStop':
        if (!this.#held.has(event.index)) this.#stopPart(event, out);
        break;
      case 'finish':
        this.#finish = event.finish;
        break;
      case 'usage':
        this.usage = event.usage;
        out.push({ type: 'usage', usage: this.#total! });
        break;
      case 'end':
        this.#end(out);
        break;
      default:
        out.push(event);
    }
  }

  /** Held back until the turn has output, so that until then another endpoint can take over. */
  #showPrelude(out: TurnEvent[]): void {
    if (this.#prelude.length > 0) out.push(...this.partEvents(this.#prelude));
    this.#prelude = [];
  }

  #startPart(event: Extract<TurnEvent, { type: 'partStart' }>, out: TurnEvent[]): void {
    const { index } = event;
    let { part } = event;
    this.#showPrelude(out);
    if (part.type === 'toolCall') {
      this.writtenBytes += Buffer.byteLength(part.arguments);
      if (this.#tools.claims(part.name)) {
        this.#held.set(index, { ...part });
        this.#checkLength(part.arguments);
        return;
      }
      this.clientCalls += 1;
      const native = this.#tools.ownCalls?.(part.name);
      if (native !== undefined) part = withOwnItem(part, native);
    }
    const joined = this.#nextIndex++;
    this.#indexes.set(index, joined);
    if (part.type === 'text' && this.#tools.cites !== undefined) this.#texts.set(index, part.text);
    out.push({ ...event, part, index: joined });
  }

  #delta(event: Extract<TurnEvent, { type: 'partDelta' }>, out: TurnEvent[]): void {
    const { arguments: more = '', text = '' } = event.delta;
    this.writtenBytes += Buffer.byteLength(more) + Buffer.byteLength(text);
    const held = this.#held.get(event.index);
    if (held === undefined) {
      const before = this.#texts.get(event.index);
      if (before !== undefined) this.#texts.set(event.index, before + text);
      out.push({ ...event, index: this.#indexes.get(event.index)! });
    } else {
      held.arguments += more;
      this.#checkLength(held.arguments);
    }
  }

  #stopPart(event: Extract<TurnEvent, { type: 'partStop' }>, out: TurnEvent[]): void {
    const index = this.#indexes.get(event.index)!;
    const text = this.#texts.get(event.index);
    this.#texts.delete(event.index);
    for (const citation of text === undefined ? [] : (this.#tools.cites?.(text) ?? [])) {
      out.push({ type: 'partDelta', choice: event.choice, index, delta: { citation } });
    }
    out.push({ ...event, index });
  }

  #checkLength({ length }: string): void {
    if (length > MAX_ARGUMENTS_LENGTH) this.failure = TOO_LONG;
  }

  #end(out: TurnEvent[]): void {
    this.#ended = true;
    this.#showPrelude(out);
    const unified = this.#finish?.unified;
    // Truncated arguments are not run.
    if (unified === 'length' || unified === 'content_filter') this.#held.clear();
    if (!this.#waits) out.push(...this.end());
  }
}

/** An item's id starts with its type, so that of the function's item goes. */
function withOwnItem(part: ToolCallPart, native: NonNullable<ToolCallPart['native']>): ToolCallPart {
  const { id: _, ...responses } = part.extras?.responses ?? {};
  return { ...part, native, extras: { ...part.extras, responses } };
}

const TOO_LONG: UpstreamFailure = {
  kind: 'malformed',
  status: null,
  message: 'the arguments of a tool call are too long',
};

/**
 * Applies the guardrail filters to the events of an answer. Events leave in the order in which they arrive, with
 * matches replaced. All text of one kind is filtered as one text, across parts. A tool call is released once its
 * arguments are complete; under a blocking filter, once the whole answer is.
 */
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { Part, PartDelta, ToolCallPart, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { collect, eventsOf } from '../../formats/conversation/replay.ts';
import type { AnswerFilters, AnswerScreening, Hit, ScreenedText } from '../../guardrails/index.ts';
import { replaceStrings } from './replace-strings.ts';

/** Kinds of text, each filtered as one text: visible text, reasoning, refusal and the transcript of audio. */
type TextKind = 'text' | 'reasoning' | 'refusal' | 'audio';
type TextMember = 'text' | 'transcript';

type Item =
  | { kind: 'event'; event: TurnEvent }
  | { kind: 'text'; index: number; member: TextMember; run: Run; start: number; end: number }
  | { kind: 'call'; index: number; call: ToolCallPart; complete: boolean }
  /** The end of a text part, with its signature and citations, which apply to the whole part. */
  | { kind: 'stop'; index: number; sealed: PartDelta; citations: PartDelta[] };

interface Run {
  screened: ScreenedText;
  /** The offset up to which the text may be released. */
  releasable: number;
  ended: boolean;
}

interface OpenPart {
  textKind: TextKind | undefined;
  call: Extract<Item, { kind: 'call' }> | undefined;
  sealed: PartDelta;
  citations: PartDelta[];
}

/** The most UTF-16 units that an answer may hold back at once. */
const MAX_HELD = 8 * 1024 * 1024;
/** The most log probabilities held back until it is known whether they may be shown. */
const MAX_LOGPROBS = 20_000;

function heldTooMuch(): GatewayError {
  const message = "the response is too large to be held back for this key's guardrail filters";
  return new GatewayError('provider_unavailable', message, { status: 502 });
}

export class AnswerScreen {
  readonly #filters: AnswerFilters;
  readonly #screening: AnswerScreening;
  readonly #clock: Clock;
  readonly #choices = new Map<number, ChoiceScreen>();

  constructor(filters: AnswerFilters, clock: Clock) {
    this.#filters = filters;
    this.#screening = filters.screening(clock);
    this.#clock = clock;
  }

  get hits(): readonly Hit[] {
    return this.#screening.hits;
  }

  /** The events of a stream that may be shown after these. @throws GatewayError 403 when a filter blocks */
  take(events: readonly TurnEvent[]): TurnEvent[] {
    return this.#screening.timed(() => {
      const released: TurnEvent[] = [];
      let held = 0;
      for (const event of events) {
        if ('choice' in event) this.#choice(event.choice).take(event, released);
        else if (event.type === 'safeguards')
          released.push({ ...event, results: this.#value(event.results) as unknown[] });
        else released.push(event);
      }
      this.#screening.refuse();
      for (const choice of this.#choices.values()) held += choice.held;
      if (held > MAX_HELD) throw heldTooMuch();
      return released;
    });
  }

  /** Filters a whole answer, including the members that the conversation does not model (`extras`). */
  turn(turn: Turn): Turn {
    // The answer is complete, so every match is recorded before it is refused.
    this.#screening.refuses = false;
    const { choices } = collect(this.take(eventsOf(turn)));
    const screened: Turn = { ...turn, choices };
    if (turn.extras) screened.extras = this.#value(turn.extras) as NonNullable<Turn['extras']>;
    if (turn.safeguards) screened.safeguards = this.#value(turn.safeguards) as unknown[];
    this.#screening.refuses = true;
    this.#screening.refuse();
    return screened;
  }

  /** Filters an upstream's error, which may quote the model. */
  failure(failure: UpstreamFailure): UpstreamFailure {
    const screening = this.#filters.screeningOfError(this.#clock);
    const { message, code, raw, ...rest } = failure;
    const clean = (text: string) => screening.whole(text);
    try {
      return screening.timed(() => ({
        ...rest,
        message: clean(message),
        ...(code && { code: clean(code) }),
        ...(raw !== undefined && { raw: replaceStrings(raw, clean, true) }),
      }));
    } catch {
      // The error is larger than the filters accept, so none of its text is shown.
      return { ...rest, message: '' };
    }
  }

  #choice(number: number): ChoiceScreen {
    let choice = this.#choices.get(number);
    if (choice === undefined) {
      choice = new ChoiceScreen(number, this.#screening, this.#filters.blocks);
      this.#choices.set(number, choice);
    }
    return choice;
  }

  #value(value: unknown): unknown {
    return replaceStrings(value, (text) => this.#screening.whole(text));
  }
}

class ChoiceScreen {
  readonly #number: number;
  readonly #screening: AnswerScreening;
  readonly #callsWait: boolean;
  readonly #runs = new Map<TextKind, Run>();
  readonly #open = new Map<number, OpenPart>();
  #queue: Item[] = [];
  /** Indexes of the parts in which a filter replaced text. */
  readonly #changed = new Set<number>();
  #logprobs: Extract<TurnEvent, { type: 'logprobs' }>[] = [];
  #logprobsCount = 0;
  #finished = false;
  /** UTF-16 units held back, roughly. */
  held = 0;

  constructor(number: number, screening: AnswerScreening, callsWait: boolean) {
    this.#number = number;
    this.#screening = screening;
    this.#callsWait = callsWait;
  }

  take(event: Extract<TurnEvent, { choice: number }>, released: TurnEvent[]): void {
    switch (event.type) {
      case 'partStart':
        this.#start(event.index, event.part);
        break;
      case 'partDelta':
        this.#delta(event.index, event.delta);
        break;
      case 'partStop':
        this.#stop(event.index);
        break;
      case 'logprobs':
        this.#keepLogprobs(event);
        return;
      case 'finish':
        this.#finish(event);
    }
    this.#drain(released);
  }

  #start(index: number, part: Part): void {
    const textKind = textKindOf(part);
    // Reasoning is complete once visible text begins.
    if (textKind !== 'reasoning' && part.type !== 'toolCall') this.#end('reasoning');
    const open: OpenPart = { textKind, call: undefined, sealed: {}, citations: [] };
    this.#open.set(index, open);
    if (part.type === 'toolCall') {
      open.call = { kind: 'call', index, call: { ...part }, complete: false };
      this.#queue.push(open.call);
      this.held += part.arguments.length;
      return;
    }
    const { bare, delta } = this.#apart(part, open);
    this.#queue.push({ kind: 'event', event: { type: 'partStart', choice: this.#number, index, part: bare } });
    if (delta !== undefined) this.#delta(index, delta);
  }

  /** Splits a part into its empty start and the text to filter as it arrives. */
  #apart(part: Part, open: OpenPart): { bare: Part; delta: PartDelta | undefined } {
    switch (part.type) {
      case 'text': {
        const { citations, text, ...rest } = part;
        for (const citation of citations ?? []) open.citations.push({ citation: this.#cleaned(citation) });
        return { bare: { ...this.#cleaned(rest), text: '' }, delta: { text } };
      }
      case 'refusal':
        return { bare: { ...part, text: '' }, delta: { text: part.text } };
      case 'reasoning': {
        const { signature, ...rest } = part;
        const bare: Part = { ...rest, text: '' };
        if (part.extras) bare.extras = this.#cleaned(part.extras);
        return { bare, delta: { text: part.text, ...(signature !== undefined && { signature }) } };
      }
      case 'audio': {
        const { transcript, ...bare } = part;
        return { bare, delta: transcript === undefined ? undefined : { transcript } };
      }
      case 'image':
        return { bare: part, delta: undefined };
      default:
        return { bare: this.#cleaned(part), delta: undefined };
    }
  }

  #cleaned<Value>(value: Value): Value {
    return replaceStrings(value, (text) => this.#screening.whole(text)) as Value;
  }

  #delta(index: number, delta: PartDelta): void {
    const open = this.#open.get(index);
    if (open === undefined) return;
    if (open.call !== undefined) {
      const more = delta.arguments ?? '';
      open.call.call.arguments += more;
      this.held += more.length;
      if (delta.signature !== undefined) open.sealed.signature = (open.sealed.signature ?? '') + delta.signature;
      return;
    }
    const { text, transcript, signature, citation, value, report, ...others } = delta;
    const added = text ?? transcript;
    if (added !== undefined && added !== '')
      this.#add(index, open.textKind ?? 'text', text === undefined ? 'transcript' : 'text', added);
    if (signature !== undefined) {
      open.sealed.signature = (open.sealed.signature ?? '') + signature;
      this.held += signature.length;
    }
    if (citation !== undefined) open.citations.push({ citation: this.#cleaned(citation) });
    if (value !== undefined || report !== undefined) {
      const cleaned = this.#cleaned({ ...(value !== undefined && { value }), ...(report && { report }) });
      this.#queue.push({ kind: 'event', event: { type: 'partDelta', choice: this.#number, index, delta: cleaned } });
    }
    if (Object.keys(others).length > 0) {
      this.#queue.push({ kind: 'event', event: { type: 'partDelta', choice: this.#number, index, delta: others } });
    }
  }

  #add(index: number, textKind: TextKind, member: TextMember, more: string): void {
    let run = this.#runs.get(textKind);
    if (run === undefined) {
      run = { screened: this.#screening.text(), releasable: 0, ended: false };
      this.#runs.set(textKind, run);
    }
    const start = run.screened.length;
    run.releasable = run.screened.advance(more, false);
    this.held += more.length;
    const last = this.#queue.at(-1);
    if (last?.kind === 'text' && last.index === index && last.run === run) last.end = run.screened.length;
    else this.#queue.push({ kind: 'text', index, member, run, start, end: run.screened.length });
  }

  #stop(index: number): void {
    const open = this.#open.get(index);
    if (open === undefined) return;
    this.#open.delete(index);
    if (open.call === undefined) {
      this.#queue.push({ kind: 'stop', index, sealed: open.sealed, citations: open.citations });
      return;
    }
    const { call } = open;
    const { signature } = open.sealed;
    if (signature !== undefined && call.call.signature !== undefined) {
      call.call.signature = { ...call.call.signature, value: call.call.signature.value + signature };
    }
    const before = call.call.arguments.length;
    call.call = this.#screenedCall(call.call);
    this.held += call.call.arguments.length - before;
    call.complete = true;
  }

  /** Filters the arguments both as decoded strings and as written. */
  #screenedCall(call: ToolCallPart): ToolCallPart {
    const { signature, ...rest } = call;
    const name = this.#screening.whole(call.name);
    const text = call.custom ? this.#screening.whole(call.arguments) : this.#screenedJson(call.arguments);
    const screened: ToolCallPart = { ...rest, name, arguments: text };
    if (call.extras) screened.extras = this.#cleaned(call.extras);
    const same = text === call.arguments && name === call.name;
    return signature !== undefined && same ? { ...screened, signature } : screened;
  }

  #screenedJson(text: string): string {
    let value: unknown;
    try {
      value = parseJson(text);
    } catch {
      return this.#screening.whole(text);
    }
    const written = stringifyJson(value);
    const replaced = stringifyJson(replaceStrings(value, (string) => this.#screening.whole(string), true));
    return replaced === written ? text : replaced;
  }

  #keepLogprobs(event: Extract<TurnEvent, { type: 'logprobs' }>): void {
    this.#logprobsCount += event.logprobs.content?.length ?? 0;
    if (this.#logprobsCount > MAX_LOGPROBS) this.#logprobs = [];
    else this.#logprobs.push(event);
  }

  #finish(event: Extract<TurnEvent, { type: 'finish' }>): void {
    for (const textKind of this.#runs.keys()) this.#end(textKind);
    this.#finished = true;
    const { refusal, stopSequence } = event.finish;
    const finish = { ...event.finish };
    if (refusal) finish.refusal = this.#cleaned(refusal);
    if (stopSequence) finish.stopSequence = this.#screening.whole(stopSequence);
    this.#queue.push({ kind: 'event', event: { ...event, finish } });
  }

  #end(textKind: TextKind): void {
    const run = this.#runs.get(textKind);
    if (run === undefined) return;
    run.releasable = run.screened.advance('', true);
    run.ended = true;
    this.#runs.delete(textKind);
  }

  #drain(released: TurnEvent[]): void {
    // After a match that blocks, nothing that precedes it may be released.
    this.#screening.refuse();
    const choice = this.#number;
    let passed = 0;
    for (const item of this.#queue) {
      if (item.kind === 'text') {
        if (!this.#drainText(item, released)) break;
      } else if (item.kind === 'call') {
        if (!item.complete || (this.#callsWait && !this.#finished)) break;
        const { index, call } = item;
        released.push({ type: 'partStart', choice, index, part: { ...call, arguments: '' } });
        if (call.arguments !== '') {
          released.push({ type: 'partDelta', choice, index, delta: { arguments: call.arguments } });
        }
        released.push({ type: 'partStop', choice, index });
        this.held -= call.arguments.length;
      } else if (item.kind === 'stop') this.#drainStop(item, released);
      else {
        if (item.event.type === 'finish' && this.#changed.size === 0) released.push(...this.#logprobs);
        released.push(item.event);
      }
      passed += 1;
    }
    if (passed > 0) this.#queue = this.#queue.slice(passed);
  }

  /** Returns true once the whole item is released. */
  #drainText(item: Extract<Item, { kind: 'text' }>, released: TurnEvent[]): boolean {
    const { run, index, member } = item;
    const end = Math.min(item.end, run.releasable);
    if (end > item.start) {
      const { text, changed } = run.screened.read(item.start, end);
      if (changed) this.#changed.add(index);
      if (text !== '') released.push({ type: 'partDelta', choice: this.#number, index, delta: { [member]: text } });
      this.held -= end - item.start;
      item.start = end;
      run.screened.forget(end);
    }
    return item.start >= item.end;
  }

  /** Signatures and citation offsets fit the original text only, so both are dropped when a filter changed it. */
  #drainStop({ index, sealed, citations }: Extract<Item, { kind: 'stop' }>, released: TurnEvent[]): void {
    const choice = this.#number;
    const changed = this.#changed.has(index);
    for (const { citation } of citations) {
      const { start, end, ...rest } = citation!;
      released.push({ type: 'partDelta', choice, index, delta: { citation: changed ? rest : citation! } });
    }
    if (sealed.signature !== undefined) {
      this.held -= sealed.signature.length;
      if (!changed) released.push({ type: 'partDelta', choice, index, delta: { signature: sealed.signature } });
    }
    released.push({ type: 'partStop', choice, index });
  }
}

function textKindOf(part: Part): TextKind | undefined {
  switch (part.type) {
    case 'text':
    case 'reasoning':
    case 'refusal':
    case 'audio':
      return part.type;
    default:
      return undefined;
  }
}

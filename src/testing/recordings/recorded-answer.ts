/**
 * The content of a recorded response, read from its bytes on the wire, whole or truncated: the expectation for the gateway's
 * response. Lenient, since services deviate from their own formats. It shares no code with `src/formats` and `src/http`.
 */

/** Tokens; `input` is everything read, from a cache or not, `output` everything written, reasoning included. */
export interface Counts {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}

export interface RecordedCall {
  /** null: the service gave none. */
  id: string | null;
  name: string;
  /** JSON text; '' where none came. */
  arguments: string;
  /** Free text instead of JSON. */
  custom: boolean;
}

export interface RecordedChoice {
  text: string;
  reasoning: string;
  refusal: string;
  calls: RecordedCall[];
  /** The service's word. */
  finish: string | null;
}

export interface RecordedAnswer {
  /** False: it failed, or it is truncated. */
  complete: boolean;
  choices: RecordedChoice[];
  /** The last count that came. */
  usage: Counts | null;
  /** Letters that came after that count. */
  uncounted: number;
  /** It has something visible other than text, reasoning, refusals and calls: a signature, a vendor's block, sound. */
  other: boolean;
}

/**
 * Which of the two counts the service did not make: it wrote something and read nothing, or the reverse. The recording
 * was shortened, is truncated, or the service never reports it.
 */
export function lackingCount(recorded: RecordedAnswer): 'input' | 'output' | undefined {
  const { usage } = recorded;
  if (usage === null) return undefined;
  if (usage.input === 0 && usage.output > 0) return 'input';
  return usage.output === 0 && usage.input > 0 && saysSomething(recorded) ? 'output' : undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

/** How a stream's connection ended: in order, or broken, which loses the event that no blank line has ended. */
export type Ending = 'close' | 'break';

export function readStreamWith(reader: Reading, bytes: Buffer, ending: Ending): RecordedAnswer {
  const { events, rest, stray } = eventsIn(bytes.toString('utf8'));
  for (const data of events) if (!reader.over) reader.read(data);
  if (ending === 'close' && rest !== '' && !reader.over) reader.read(rest);
  if (ending === 'close' && stray.includes('"error"') && !reader.over) reader.fail();
  if (!reader.over && (ending === 'break' || !reader.finished)) reader.fail();
  return reader.answer();
}

export function readWholeWith(reader: Reading, text: string): RecordedAnswer {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || value.error || value.type === 'error') reader.fail();
  else reader.readWhole(value, text);
  return reader.answer();
}

/** Something came that a client sees, going by the kinds that are read here. */
export function saysSomething({ choices }: RecordedAnswer): boolean {
  return choices.some(({ text, reasoning, refusal, calls }) => text + reasoning + refusal !== '' || calls.length > 0);
}

/** Data of the events that a blank line ended, of the one that none did, and the lines that belong to no event. */
function eventsIn(text: string): { events: string[]; rest: string; stray: string } {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  const events: string[] = [];
  const stray: string[] = [];
  let data: string[] = [];
  lines.forEach((line, at) => {
    const last = at === lines.length - 1;
    if (line === '') {
      if (!last && data.length > 0) events.push(data.join('\n'));
      if (!last) data = [];
    } else if (/^data(:|$)/.test(line)) data.push(line.slice(5).replace(/^ /, ''));
    else if (!/^(:|(event|id|retry)(:|$))/.test(line)) stray.push(line);
  });
  return { events, rest: data.join('\n'), stray: stray.join('\n') };
}

export abstract class Reading {
  over = false;
  finished = false;
  protected failed = false;
  protected readonly choices: RecordedChoice[] = [];
  protected usage: Counts | null = null;
  /** Letters that the last count knows of. */
  protected counted = 0;
  protected other = false;

  abstract read(data: string): void;
  abstract readWhole(value: Json, text: string): void;

  fail(): void {
    this.over = true;
    this.failed = true;
  }

  answer(): RecordedAnswer {
    const { choices, usage, other } = this;
    const answer = { complete: !this.failed, choices, usage, uncounted: this.letters() - this.counted, other };
    // A 200 that says nothing and bills nothing has failed too; a refusal says something.
    const refused = this.choices.some(({ finish }) => finish === 'content_filter' || finish === 'refusal');
    const silent = !saysSomething(answer) && !this.other && !refused && (this.usage?.output ?? 0) === 0;
    return silent && this.choices[0]?.finish !== 'length' ? { ...answer, complete: false } : answer;
  }

  protected letters(): number {
    return this.choices
      .flatMap(({ text, reasoning, refusal, calls }) => [
        text,
        reasoning,
        refusal,
        ...calls.map((call) => call.name + call.arguments),
      ])
      .join('').length;
  }

  protected choice(index: number): RecordedChoice {
    while (this.choices.length <= index) {
      this.choices.push({ text: '', reasoning: '', refusal: '', calls: [], finish: null });
    }
    return this.choices[index]!;
  }
}

export class ChatReading extends Reading {
  private readonly keys = new Map<RecordedCall, unknown>();

  read(data: string): void {
    if (data.trim() === '') return;
    if (data.trim() === '[DONE]') {
      this.over = true;
      return;
    }
    const chunk = parsed(data);
    if (typeof chunk !== 'object' || chunk === null) {
      this.fail();
      return;
    }
    if (chunk.error) this.fail();
    else for (const choice of chunk.choices ?? []) this.take(choice, choice.delta ?? {}, false);
    this.count(chunk.usage ?? chunk.x_groq?.usage);
    if ((chunk.choices ?? []).some((choice: Json) => choice.error || choice.finish_reason === 'error')) this.fail();
  }

  readWhole(value: Json): void {
    this.count(value.usage);
    for (const choice of value.choices ?? []) this.take(choice, choice.message ?? {}, true);
    if (this.choices.length === 0) this.fail();
  }

  private take(choice: Json, message: Json, whole: boolean): void {
    const into = this.choice(choice.index ?? 0);
    const { content } = message;
    if (typeof content === 'string') into.text += content;
    else if (Array.isArray(content)) for (const part of content) this.takePart(into, part);
    else if (content) into.text += JSON.stringify(content);
    const details = message.reasoning_details ?? [];
    into.reasoning += plainReasoning(message, details);
    if (details.length > 0 || message.audio || message.images?.length || message.annotations?.length) this.other = true;
    into.refusal += message.refusal ?? '';
    for (const call of message.tool_calls ?? []) this.takeCall(into, call, whole);
    if (message.function_call) this.takeFunction(into, message.function_call);
    if (choice.finish_reason) {
      into.finish = choice.finish_reason;
      this.finished = true;
    }
  }

  private takePart(into: RecordedChoice, part: Json): void {
    if (part.type === 'text') into.text += part.text;
    else if (part.type === 'thinking')
      for (const inner of [part.thinking].flat()) into.reasoning += inner.text ?? inner;
    else this.other = true;
  }

  private takeCall(into: RecordedChoice, call: Json, whole: boolean): void {
    const body = call.function ?? call.custom ?? {};
    const given = body.arguments ?? body.input ?? '';
    const written = typeof given === 'object' ? JSON.stringify(given) : given;
    const key = call.index ?? call.id;
    let known = whole ? undefined : into.calls.findLast((one) => key === undefined || this.keys.get(one) === key);
    // Some number every parallel call 0: a new id with a name is a new call.
    if (known !== undefined && call.id && known.id !== null && call.id !== known.id && body.name) known = undefined;
    if (known === undefined) {
      known = { id: call.id || null, name: body.name ?? '', arguments: '', custom: call.type === 'custom' };
      this.keys.set(known, key);
      into.calls.push(known);
    }
    known.arguments += written;
  }

  private takeFunction(into: RecordedChoice, call: Json): void {
    if (call.name) into.calls.push({ id: null, name: call.name, arguments: '', custom: false });
    const last = into.calls.at(-1);
    if (last) last.arguments += call.arguments ?? '';
  }

  private count(usage: Json): void {
    if (typeof usage?.prompt_tokens !== 'number') return;
    const read = usage.prompt_tokens_details ?? {};
    const reasoning = usage.completion_tokens_details?.reasoning_tokens || usage.reasoning_tokens || 0;
    // xAI counts reasoning outside of the completion; its total shows that.
    const beside = reasoning > 0 && usage.total_tokens === usage.prompt_tokens + usage.completion_tokens + reasoning;
    this.usage = {
      input: usage.prompt_tokens,
      cacheRead: read.cached_tokens || usage.prompt_cache_hit_tokens || usage.cached_tokens || 0,
      cacheWrite: read.cache_write_tokens || 0,
      output: usage.completion_tokens + (beside ? reasoning : 0),
      reasoning,
    };
    this.counted = this.letters();
  }
}

function plainReasoning(message: Json, details: Json[]): string {
  const plain = message.reasoning || message.reasoning_content;
  return plain || details.map((detail) => detail.text ?? detail.summary ?? '').join('');
}

export class MessagesReading extends Reading {
  private readonly open = new Map<number, RecordedCall | null>();
  private counts: Json = {};
  private started = false;

  read(data: string): void {
    if (data === '') return;
    const event = parsed(data);
    if (typeof event !== 'object' || event === null) {
      this.fail();
      return;
    }
    const choice = this.choice(0);
    switch (event.type) {
      case 'message_start':
        // An upstream that starts its message again in mid-stream has lost its place.
        if (this.started && (this.open.size > 0 || saysSomething({ ...this.answer() }))) this.fail();
        else this.start(choice, event.message);
        return;
      case 'content_block_start':
        this.open.set(event.index, this.block(choice, event.content_block, undefined));
        return;
      case 'content_block_delta':
        this.delta(choice, event.delta, this.open.get(event.index));
        return;
      case 'message_delta':
        this.stop(choice, event.delta);
        this.count(event.usage);
        return;
      case 'message_stop':
        this.over = true;
        return;
      case 'error':
        this.fail();
    }
  }

  readWhole(value: Json, text: string): void {
    const exact = parsedExactly(text);
    const choice = this.choice(0);
    value.content.forEach((block: Json, at: number) => {
      this.block(choice, block, block.type === 'tool_use' ? exact.content[at].input : undefined);
    });
    this.stop(choice, value);
    this.count(value.usage);
  }

  private start(choice: RecordedChoice, message: Json): void {
    this.started = true;
    for (const block of message.content) this.block(choice, block, undefined);
    this.stop(choice, message);
    this.count(message.usage);
  }

  private block(choice: RecordedChoice, block: Json, input: unknown): RecordedCall | null {
    choice.text += block.type === 'text' ? (block.text ?? '') : '';
    choice.reasoning += block.type === 'thinking' ? (block.thinking ?? '') : '';
    if (block.type === 'tool_use') {
      const given = input ?? block.input;
      const empty = given === undefined || Object.keys(given).length === 0;
      const call = { id: block.id, name: block.name, arguments: empty ? '' : exactText(given), custom: false };
      choice.calls.push(call);
      return call;
    }
    if ((block.type !== 'text' && block.type !== 'thinking') || block.signature || block.citations?.length) {
      this.other = true;
    }
    return null;
  }

  private delta(choice: RecordedChoice, delta: Json, call: RecordedCall | null | undefined): void {
    if (delta.type === 'text_delta') choice.text += delta.text;
    else if (delta.type === 'thinking_delta') choice.reasoning += delta.thinking;
    else if (delta.type === 'input_json_delta' && call) call.arguments += delta.partial_json;
    else this.other = true;
  }

  private stop(choice: RecordedChoice, delta: Json): void {
    if (typeof delta?.stop_reason !== 'string') return;
    choice.finish = delta.stop_reason;
    this.finished = true;
  }

  private count(usage: Json): void {
    for (const [key, value] of Object.entries(usage ?? {})) if (value !== null) this.counts[key] = value;
    if (typeof this.counts.output_tokens !== 'number') return;
    this.usage = billedMessages(this.counts);
    this.counted = this.letters();
  }
}

/** What is billed of a record of the messages format: all of its calls, except for those that were declined unanswered. */
export function billedMessages(record: Json): Counts {
  const all: Json[] = record.iterations ?? [];
  const served = all.findLastIndex(({ type }) => type === 'fallback_message');
  const calls = all.filter(({ output_tokens: output }, index) => index >= served || output > 0);
  const counts = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  for (const call of calls.length > 0 ? calls : [record]) {
    const [read, written] = [call.cache_read_input_tokens ?? 0, call.cache_creation_input_tokens ?? 0];
    counts.input += (call.input_tokens ?? 0) + read + written;
    counts.cacheRead += read;
    counts.cacheWrite += written;
    counts.output += call.output_tokens;
  }
  return { ...counts, reasoning: record.output_tokens_details?.thinking_tokens ?? 0 };
}

/** A number with its digits as in the text; one that a double holds may be spelled otherwise, `1.0` as `1`. */
class Digits {
  readonly written: string;
  constructor(written: string) {
    const held = /^-?[\d.]+$/.test(written) && written.replaceAll(/\D/g, '').length <= 15;
    this.written = held ? String(Number(written)) : written;
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON whose numbers keep all of their digits; throws like `JSON.parse`. */
export function parsedExactly(text: string): Json {
  const parse = JSON.parse as (text: string, revive: (key: string, value: unknown, at: Json) => unknown) => unknown;
  return parse(text, (_key, value, at) => (typeof value === 'number' ? new Digits(at.source) : value));
}

/** JSON text of what `parsedExactly` read: no spaces, digits kept. */
export function exactText(value: unknown): string {
  if (value instanceof Digits) return value.written;
  if (Array.isArray(value)) return `[${value.map(exactText).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}:${exactText(inner)}`)
    .join(',')}}`;
}

/**
 * Relays a stream. The usual chunk costs one comparison and the replacement of its beginning (id, model and the like);
 * a chunk that violates the format is rebuilt from the decoded events. Finish reasons and usage are held until the
 * closing figures are known: services repeat finish reasons, and an error may follow one.
 */
import type { GatewayError } from '../../base/errors.ts';
import { scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import type { Finish, TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, nonEmptyText, restOf, textOf } from '../conversation/fields.ts';
import type { Closing, RelayStream, Stamp } from '../conversation/format.ts';
import { ChunkHead } from './chunk-head.ts';
import { choiceIndex } from './decoder.ts';
import { errorObject } from './encode-failure.ts';
import { DONE, ERROR_CHOICE } from './encoder.ts';
import { shownFinish } from './finish.ts';
import { withoutNullUsage } from './nulls.ts';
import {
  assess,
  editOnlyChoice,
  emptyArguments,
  hasContent,
  isRetold,
  mendChoice,
  RelayedChoice,
  withReasoning,
} from './relay-chunk.ts';
import { relayedUsage } from './usage.ts';

/** Chunk members that the gateway sets or knows; unknown members of a dropped chunk are moved to another chunk. */
const KNOWN: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'model',
  'provider',
  'choices',
  'usage',
  'system_fingerprint',
  'service_tier',
  'obfuscation',
]);

const WITHOUT_USAGE: readonly Edit[] = [{ key: 'usage', json: undefined }];
const NO_CHOICES: readonly Edit[] = [{ key: 'choices', json: '[]' }];

interface Held {
  /** The choice that the chunk finishes; -1 for a metadata chunk. */
  choice: number;
  text: string;
}

export class ChatRelayStream implements RelayStream {
  readonly #stamp: Stamp;
  readonly #head: ChunkHead;
  readonly #choices = new Map<number, RelayedChoice>();
  /** The decoded finish of each choice. */
  readonly #finishes = new Map<number, Finish>();
  /** Chunks from the first finish reason on, in order. */
  readonly #held: Held[] = [];
  /** Unknown members of the upstream's usage chunks, which are not forwarded themselves. */
  #strange: Fields = {};
  readonly #thinkTags: boolean;

  constructor(stamp: Stamp, thinkTags = false) {
    this.#stamp = stamp;
    this.#thinkTags = thinkTags;
    this.#head = new ChunkHead(stamp);
  }

  event(_name: string, data: string, value: unknown, events: readonly TurnEvent[]): string {
    const chunk = fieldsOrUndefined(value);
    if (chunk === undefined) {
      for (const event of events) if (event.type === 'finish') this.#finishes.set(event.choice, event.finish);
      return '';
    }
    const choices = chunk['choices'];
    if (!Array.isArray(choices) || choices.length === 0) return this.#withoutChoices(chunk, data);
    let worst = 'standard';
    let ends = false;
    for (const entry of choices as unknown[]) {
      const choice = fieldsOf(entry);
      const found = assess(choice, this.#choice(choice['index']), events);
      if (worst !== 'broken' && found !== 'standard') worst = found;
      ends ||= nonEmptyText(choice['finish_reason']) !== undefined;
    }
    for (const event of events) {
      if (event.type === 'partStart' || (event.type === 'partDelta' && event.delta.arguments !== undefined)) {
        this.#choice(event.choice).track(event);
      }
    }
    if (this.#thinkTags) {
      for (const entry of choices as unknown[]) {
        const choice = fieldsOf(entry);
        if (isRetold(choice, this.#choice(choice['index']), events)) worst = 'broken';
      }
    }
    if (worst === 'standard' && !ends) return this.#forward(chunk, data, choices as unknown[]);
    return choices.length === 1
      ? this.#one(chunk, data, fieldsOf(choices[0]), events, worst)
      : this.#several(chunk, choices as unknown[], events);
  }

  end(closing: Closing): string {
    const usage = this.#stamp.usage === 'none' ? undefined : relayedUsage(closing);
    const metadata = closing.metadata === undefined ? {} : { [closing.metadata.key]: closing.metadata.value };
    const separate = this.#stamp.usage === 'chunk' && usage !== undefined;
    this.#holdMissingFinishes();
    let written = '';
    for (const choice of this.#choices.values()) {
      const closed = emptyArguments(choice);
      if (closed !== undefined) written += frame(this.#chunk(closed, {}));
    }
    const last = this.#held.findLastIndex((item) => item.choice !== -1);
    this.#held.forEach((item, index) => {
      const extra = index === last && !separate ? { ...this.#strange, ...(usage && { usage }), ...metadata } : {};
      written += frame(item.choice === -1 ? item.text : this.#finishChunk(item, extra));
    });
    if (separate) written += frame(this.#chunk('[]', { ...this.#strange, usage, ...metadata }));
    return written + DONE;
  }

  failure(error: GatewayError, closing: Closing): string {
    const usage = this.#stamp.usage === 'none' ? undefined : relayedUsage(closing);
    const metadata = closing.metadata === undefined ? {} : { [closing.metadata.key]: closing.metadata.value };
    return frame(this.#chunk(`[${ERROR_CHOICE}]`, { error: errorObject(error), ...(usage && { usage }), ...metadata }));
  }

  #choice(index: unknown): RelayedChoice {
    const at = choiceIndex(index);
    let choice = this.#choices.get(at);
    if (choice === undefined) {
      choice = new RelayedChoice(at, this.#thinkTags);
      this.#choices.set(at, choice);
    }
    return choice;
  }

  /** Builds a chunk of the gateway. */
  #chunk(choices: string, extra: Fields): string {
    const named = stringifyJson(this.#head.members()).slice(0, -1);
    const more = stringifyJson(extra);
    return `${named},"choices":${choices}${more === '{}' ? '}' : `,${more.slice(1)}`}`;
  }

  /** Forwards a metadata chunk, or holds it after a finish reason; a usage chunk is kept for the end. */
  #withoutChoices(chunk: Fields, data: string): string {
    if (fieldsOrUndefined(chunk['usage']) !== undefined) {
      this.#head.observe(chunk);
      Object.assign(this.#strange, restOf(chunk, KNOWN));
      return '';
    }
    const edits = Array.isArray(chunk['choices']) ? WITHOUT_USAGE : [...NO_CHOICES, ...WITHOUT_USAGE];
    const patched = this.#head.patch(chunk, data, edits);
    if (this.#held.length === 0) return frame(patched);
    this.#held.push({ choice: -1, text: patched });
    return '';
  }

  #forward(chunk: Fields, data: string, choices: readonly unknown[]): string {
    for (const entry of choices) this.#choice(fieldsOrUndefined(entry)?.['index']).introduced = true;
    return this.#passed(chunk, data);
  }

  /** A chunk that only changes in its head. Usage is sent once, at the end. */
  #passed(chunk: Fields, data: string): string {
    const { usage } = chunk;
    const bare = usage === undefined ? data : usage === null ? withoutNullUsage(data) : undefined;
    if (bare === undefined) return frame(this.#head.patch(chunk, data, WITHOUT_USAGE));
    // Search the original text: the replaced one is a concatenation, which a search would first have to flatten.
    const replaced = this.#head.replace(chunk, bare);
    return data.includes('\n') ? frame(replaced) : `data: ${replaced}\n\n`;
  }

  /** A chunk of one choice that needs repair, finishes the choice, or both. */
  #one(chunk: Fields, data: string, choice: Fields, events: readonly TurnEvent[], worst: string): string {
    const known = this.#choice(choice['index']);
    const ends = nonEmptyText(choice['finish_reason']) !== undefined;
    let current = data;
    if (worst === 'reasoning') {
      const thought = textOf(fieldsOrUndefined(choice['delta'])?.['reasoning_content']);
      current = withReasoning(data, thought) ?? this.#mended(chunk, [choice], events);
    } else if (worst === 'broken') current = this.#mended(chunk, [choice], events);
    known.introduced = true;
    if (!ends) return this.#passed(chunk, current);
    const ended = this.#held.some((item) => item.choice === known.index);
    if (!hasContent(events, choice)) {
      if (!ended) this.#held.push({ choice: known.index, text: this.#head.patch(chunk, current, WITHOUT_USAGE) });
      return '';
    }
    if (!ended) this.#held.push({ choice: known.index, text: this.#chunk(bareChoice(known.index), {}) });
    const open = editOnlyChoice(current, [
      { key: 'finish_reason', json: 'null' },
      { key: 'native_finish_reason', json: undefined },
    ]);
    return frame(this.#head.patch(chunk, open, WITHOUT_USAGE));
  }

  /** A chunk of several choices in which some need repair or finish. */
  #several(chunk: Fields, entries: readonly unknown[], events: readonly TurnEvent[]): string {
    const choices = entries.map((entry) => fieldsOf(entry));
    const open = choices.map((choice) => {
      const known = this.#choice(choice['index']);
      if (nonEmptyText(choice['finish_reason']) === undefined) return choice;
      const ended = this.#held.some((item) => item.choice === known.index);
      if (!ended) this.#held.push({ choice: known.index, text: this.#chunk(bareChoice(known.index), {}) });
      return { ...choice, finish_reason: null };
    });
    const written = this.#mended(chunk, open, events);
    for (const choice of choices) this.#choice(choice['index']).introduced = true;
    return frame(this.#head.patch(chunk, written, WITHOUT_USAGE));
  }

  #mended(chunk: Fields, choices: readonly Fields[], events: readonly TurnEvent[]): string {
    const mended = choices.map((choice) => mendChoice(choice, this.#choice(choice['index']), events));
    return stringifyJson({ ...chunk, choices: mended });
  }

  #holdMissingFinishes(): void {
    const ended = new Set(this.#held.map((item) => item.choice));
    if (this.#choices.size === 0 && this.#finishes.size === 0) this.#choice(0);
    for (const index of new Set([...this.#choices.keys(), ...this.#finishes.keys()])) {
      if (!ended.has(index)) this.#held.push({ choice: index, text: this.#chunk(bareChoice(index), {}) });
    }
  }

  #finishChunk(item: Held, extra: Fields): string {
    const finish = this.#finishes.get(item.choice) ?? { unified: 'stop', native: null };
    const patched = editOnlyChoice(item.text, [
      { key: 'finish_reason', json: JSON.stringify(shownFinish(finish)) },
      { key: 'native_finish_reason', json: JSON.stringify(finish.native) },
    ]);
    const edits = Object.entries(extra).map(([key, value]) => ({ key, json: stringifyJson(value) }));
    return edits.length === 0 ? patched : patchMembers(patched, scanMembers(patched), edits);
  }
}

function bareChoice(index: number): string {
  return `[{"index":${index},"delta":{},"finish_reason":null}]`;
}

/** Frames one event. In JSON text, line breaks can only be white space between tokens. */
function frame(chunk: string): string {
  return `data: ${chunk.includes('\n') ? chunk.replaceAll(/[\r\n]+/g, ' ') : chunk}\n\n`;
}

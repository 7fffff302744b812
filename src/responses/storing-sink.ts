/**
 * Where the answer of a stored response goes: on to the client, and into the database. The end of the answer is held back
 * until it is stored, so that a client that has seen it can continue it at once.
 */
import type { TextEncoding } from '../base/byte-text.ts';
import { scanMembers } from '../base/json.ts';
import { patchMembers } from '../base/json-edits.ts';
import { EventReader } from '../http/sse.ts';
import type { Sink } from '../inference/index.ts';
import { type Body, textOf } from './body-text.ts';
import type { Recorded, Recorder } from './recorder.ts';
import { memberOf } from './response.ts';

interface Keeper {
  /** Stores how the response ended. False: that failed. Never rejects. */
  keep(recorded: Recorded): Promise<boolean>;
  /** The request was refused before there was a response. Never rejects. */
  discard(): Promise<void>;
}

export class StoringSink implements Sink {
  readonly #client: Sink;
  readonly #recorder: Recorder;
  readonly #keeper: Keeper;
  #held = '';
  #ending: Promise<void> | undefined;

  constructor(client: Sink, recorder: Recorder, keeper: Keeper) {
    this.#client = client;
    this.#recorder = recorder;
    this.#keeper = keeper;
  }

  get closed(): boolean {
    return this.#client.closed;
  }

  reply(status: number, headers: Record<string, string>, body: Body, encoding: TextEncoding = 'utf8'): void {
    this.#ending = this.#reply(status, headers, body, encoding);
  }

  async #reply(status: number, headers: Record<string, string>, body: Body, encoding: TextEncoding): Promise<void> {
    if (status !== 200) {
      await this.#keeper.discard();
      this.#client.reply(status, headers, body, encoding);
      return;
    }
    const text = textOf(body, encoding);
    this.#recorder.whole(text);
    const kept = await this.#keeper.keep(this.#recorder.end('failed'));
    this.#client.reply(status, headers, kept ? text : notStored(text));
  }

  open(headers: Record<string, string>): void {
    this.#client.open(headers);
  }

  write(text: string): boolean {
    this.#recorder.read(text);
    if (!this.#recorder.over) return this.#client.write(text, 'utf8');
    this.#held += text;
    return true;
  }

  end(): void {
    this.#ending = this.#end();
  }

  async #end(): Promise<void> {
    const kept = await this.#keeper.keep(this.#recorder.end('failed'));
    if (this.#client.closed) return;
    this.#client.write(kept ? this.#held : lastEventsNotStored(this.#held), 'utf8');
    this.#client.end();
  }

  /** Once the request is over. Resolves when its end is stored and sent. */
  async settled(): Promise<void> {
    // The client has disconnected.
    this.#ending ??= this.#keeper.keep(this.#recorder.end('cancelled')).then(() => {});
    await this.#ending;
  }

  onDrain(run: () => void): void {
    this.#client.onDrain(run);
  }

  onClose(run: () => void): void {
    this.#client.onClose(run);
  }

  entered(...told: Parameters<NonNullable<Sink['entered']>>): void {
    this.#client.entered?.(...told);
  }
}

/** The response could not be stored, so it must say `store: false`. */
function notStored(response: string): string {
  return patchMembers(response, scanMembers(response), [{ key: 'store', json: 'false' }]);
}

function lastEventsNotStored(text: string): string {
  let result = '';
  const reader = new EventReader((name, data) => {
    const response = data.startsWith('{') ? memberOf(data, 'response') : undefined;
    const edits = response === undefined ? [] : [{ key: 'response', json: notStored(response) }];
    const told = edits.length === 0 ? data : patchMembers(data, scanMembers(data), edits);
    const lines = told.replaceAll('\n', '\ndata: ');
    result += `${name === '' ? '' : `event: ${name}\n`}data: ${lines}\n\n`;
  });
  reader.push(Buffer.from(text));
  return result;
}

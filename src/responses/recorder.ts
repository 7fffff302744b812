/** Reads along what the client of a response gets, so that the response can be stored however it ends. */
import { GatewayError } from '../base/errors.ts';
import { scanMembers, stringifyJson } from '../base/json.ts';
import { type Edit, patchMembers } from '../base/json-edits.ts';
import { type Fields, fieldsOf } from '../formats/conversation/fields.ts';
import type { RelayStream, Stamp } from '../formats/conversation/format.ts';
import { responses } from '../formats/index.ts';
import { EventReader } from '../http/sse.ts';
import { memberOf, type ResponseStatus } from './response.ts';

export interface Recorded {
  status: ResponseStatus;
  /** JSON of the response. */
  answer: string;
}

const TERMINAL: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

interface RecorderOptions {
  /** Replaces `created_at`, in Unix seconds: a response that was queued exists since then. */
  created?: number;
  /** Called with each event. */
  told?(data: string, value: Fields): void;
}

export class Recorder {
  readonly #reader = new EventReader((name, data) => this.#event(name, data));
  /** Knows the output so far. */
  readonly #stream: RelayStream;
  /** JSON of the response in the latest event that has it. */
  #answer: string;
  #error: Fields | undefined;
  #ended: Recorded | undefined;
  readonly #options: RecorderOptions;

  /** @param answer JSON of the response before its first event */
  constructor(stamp: Stamp, answer: string, options: RecorderOptions = {}) {
    this.#stream = responses.relay.stream(stamp, {});
    this.#answer = answer;
    this.#options = options;
  }

  /** Text of a stream. */
  read(text: string): void {
    this.#reader.push(Buffer.from(text));
  }

  /** A whole response. */
  whole(answer: string): void {
    this.#ended = { status: statusOf(answer), answer: this.#dated(answer) };
  }

  #dated(response: string): string {
    const { created } = this.#options;
    if (created === undefined) return response;
    return patchMembers(response, scanMembers(response), [{ key: 'created_at', json: String(created) }]);
  }

  /** The stream's last event was read. */
  get over(): boolean {
    return this.#ended !== undefined || this.#error !== undefined;
  }

  /** How it ended. @param otherwise for a stream without a last event: `cancelled` if its client disconnected */
  end(otherwise: 'cancelled' | 'failed'): Recorded {
    if (this.#ended !== undefined) return this.#ended;
    const status = this.#error === undefined ? otherwise : 'failed';
    const edits: Edit[] = [{ key: 'status', json: JSON.stringify(status) }];
    const output = this.#output();
    if (output !== undefined) edits.push({ key: 'output', json: output });
    if (this.#error !== undefined) edits.push({ key: 'error', json: stringifyJson(this.#error) });
    return { status, answer: patchMembers(this.#answer, scanMembers(this.#answer), edits) };
  }

  #event(name: string, data: string): void {
    if (!data.startsWith('{')) return;
    const value = fieldsOf(JSON.parse(data));
    const { type } = value;
    const received = memberOf(data, 'response');
    const response = received && this.#dated(received);
    const isChanged = response !== received;
    this.#options.told?.(
      isChanged ? patchMembers(data, scanMembers(data), [{ key: 'response', json: response! }]) : data,
      value,
    );
    if (TERMINAL.has(type) && response !== undefined) {
      this.#ended = { status: statusOf(response), answer: response };
    } else if (type === 'error') {
      this.#error = { code: value['code'], message: value['message'] };
    } else {
      if (response !== undefined) this.#answer = response;
      this.#stream.event(name, data, value, []);
    }
  }

  /** JSON of the output of a stream that broke off: its calls are dropped unless they are complete. */
  #output(): string | undefined {
    let output: string | undefined;
    const reader = new EventReader((_name, data) => {
      const response = data.startsWith('{') ? memberOf(data, 'response') : undefined;
      output = response === undefined ? output : memberOf(response, 'output');
    });
    reader.push(Buffer.from(this.#stream.failure(new GatewayError('server', 'broken off'), {})));
    return output;
  }
}

function statusOf(answer: string): ResponseStatus {
  return (JSON.parse(memberOf(answer, 'status') ?? '"completed"') as ResponseStatus) ?? 'completed';
}

/** A gateway client that sends plans (`planned-upstream.ts`) and records the responses. */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { INFERENCE_KEY } from '../gateway/gateway.ts';
import type { Plan } from '../upstream/planned-upstream.ts';

export interface Asking {
  stream?: boolean;
  key?: string;
  route?: string;
  /** Reads nothing of the answer until `resume`. */
  paused?: boolean;
  /** Further members of the body. */
  body?: Record<string, unknown>;
}

export class Answer {
  readonly tag: string;
  readonly request: ClientRequest;
  /** 0 until the response head arrives. */
  status = 0;
  generationId: string | undefined;
  text = '';
  /** Bytes of the body so far; the only count for an answer that is too long to keep. */
  bytes = 0;
  /** The answer ended as HTTP says. */
  complete = false;
  /** The connection is over, in whatever way. */
  over = false;
  keep = true;
  #response: IncomingMessage | undefined;
  #paused: boolean;

  constructor(url: string, plan: Plan, { stream = true, key = INFERENCE_KEY, route, paused = false, body }: Asking) {
    this.tag = plan.tag;
    this.#paused = paused;
    const messages = [{ role: 'user', content: JSON.stringify(plan) }];
    const text = JSON.stringify({ model: 'test/planned', stream, user: plan.tag, messages, ...body });
    this.request = http.request(`${url}/api/v1${route ?? '/chat/completions'}`, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      },
    });
    this.request.on('response', (response) => this.#read(response));
    this.request.on('error', () => {});
    this.request.on('close', () => {
      this.over = true;
    });
    this.request.end(text);
  }

  /** The stream reached its end marker. */
  get done(): boolean {
    return this.text.includes('data: [DONE]');
  }

  /** Data of the events so far, parsed; the end marker left out. */
  get events(): Record<string, unknown>[] {
    return this.text
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)) as Record<string, unknown>);
  }

  get errors(): Record<string, unknown>[] {
    return this.events.filter((event) => 'error' in event);
  }

  /** Text of all choices. */
  get content(): string {
    type Chunk = { choices?: { delta?: { content?: string } }[] };
    return this.events.map((event) => (event as Chunk).choices?.[0]?.delta?.content ?? '').join('');
  }

  pause(): void {
    this.#paused = true;
    this.#response?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#response?.resume();
  }

  leave(): void {
    this.request.destroy();
  }

  #read(response: IncomingMessage): void {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    const id = response.headers['x-generation-id'];
    if (typeof id === 'string') this.generationId = id;
    response.setEncoding('utf8');
    response.on('error', () => {});
    response.on('data', (text: string) => {
      this.bytes += text.length;
      if (this.keep) this.text += text;
    });
    response.on('end', () => {
      this.complete = response.complete;
    });
    if (this.#paused) response.pause();
  }
}

export function ask(url: string, plan: Plan, asking: Asking = {}): Answer {
  return new Answer(url, plan, asking);
}

/**
 * An upstream whose responses are planned by the requests: the text of the last message is the plan as JSON. So many requests
 * with different outcomes can run at once through an ordinary gateway. It logs requests and responses, to which the tests
 * compare the rows. It runs in the test's process, or as a separate one that outlives a killed gateway:
 *
 *     node src/testing/upstream/planned-upstream.ts <file for the log>
 *
 * Then each entry is a line of the file and of the output; the first line of the output is `{"url":...}`, and the signal
 * SIGUSR2 releases every response that is held.
 */
import { once } from 'node:events';
import { appendFileSync, writeSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createGzip } from 'node:zlib';

export interface Plan {
  /** Names the request in the log. */
  tag: string;
  /** Content events, and the text of each. Default 3 events of `word `. */
  events?: number;
  text?: string;
  gapMs?: number;
  /** Sends nothing more until `release`: before the head, after it, or after so many events. */
  hold?: 'head' | 'body' | number;
  /** Breaks the connection after so many events. */
  cutAfter?: number;
  promptTokens?: number;
  completionTokens?: number;
  /** Answers whole although a stream was asked for, or the reverse. */
  contrary?: boolean;
  gzip?: boolean;
  /** So many turns call the function `datetime` before the one with the text; each turn reports the usage of the plan. */
  toolTurns?: number;
  /** Fails with this status and shows the credential that it was given, as some upstreams do. */
  echo?: number;
}

export interface Entry {
  tag: string;
  /** `left`: the connection was closed before the answer was sent. */
  what: 'asked' | 'head' | 'event' | 'sent' | 'left';
  /** Content events sent so far. */
  events: number;
  atMs: number;
}

export class PlannedUpstream {
  readonly log: Entry[] = [];
  /** Everything that was asked, credentials included. */
  readonly plans = new Map<string, Plan>();
  readonly headers: http.IncomingHttpHeaders[] = [];
  url = '';
  readonly #server = http.createServer((request, response) => void this.#answer(request, response));
  readonly #sockets = new Set<Socket>();
  readonly #onEntry: (entry: Entry) => void;
  #held: (() => void)[] = [];
  #open = 0;

  constructor(onEntry: (entry: Entry) => void = () => {}) {
    this.#onEntry = onEntry;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  /** Answers that are being sent or held. */
  get open(): number {
    return this.#open;
  }

  /** Tags with an entry of this kind. */
  tags(what: Entry['what']): Set<string> {
    return new Set(this.log.filter((entry) => entry.what === what).map((entry) => entry.tag));
  }

  /** Releases every response that is held now. */
  release(): void {
    for (const go of this.#held.splice(0)) go();
  }

  close(): void {
    this.release();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const gone = new Promise<void>((resolve) => void response.on('close', () => resolve()));
    let text = '';
    try {
      for await (const chunk of request) text += chunk;
    } catch {
      return;
    }
    const body = JSON.parse(text) as RequestBody;
    const plan = planOf(body);
    this.plans.set(plan.tag, plan);
    this.headers.push(request.headers);
    this.#open += 1;
    this.#note(plan.tag, 'asked', 0);
    if (plan.echo !== undefined) {
      const message = `wrong: ${request.headers.authorization}`;
      response.writeHead(plan.echo, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message, type: 'invalid', code: request.headers.authorization } }));
      this.#open -= 1;
      return;
    }
    if (body.messages === undefined) {
      this.#note(plan.tag, 'sent', 0);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(embeddingOf(plan)));
      this.#open -= 1;
      return;
    }
    const turn = body.messages.filter(({ role }) => role === 'assistant').length;
    const answer = new PlannedAnswer(
      { ...plan, toolTurns: Math.max((plan.toolTurns ?? 0) - turn, 0) },
      response,
      gone,
      (what, events) => this.#note(plan.tag, what, events),
      () => new Promise<void>((resolve) => void this.#held.push(resolve)),
    );
    await answer.send((body.stream === true) !== (plan.contrary === true));
    this.#open -= 1;
  }

  #note(tag: string, what: Entry['what'], events: number): void {
    const entry = { tag, what, events, atMs: performance.now() };
    this.log.push(entry);
    this.#onEntry(entry);
  }
}

interface RequestBody {
  stream?: boolean;
  /** Undefined for embeddings. */
  messages?: { role: string; content: string }[];
  input?: string;
}

function planOf({ messages, input = '{}' }: RequestBody): Plan {
  return JSON.parse(messages?.findLast(({ role }) => role === 'user')?.content ?? input) as Plan;
}

function embeddingOf(plan: Plan): unknown {
  const { prompt_tokens } = usageOf(plan);
  return {
    object: 'list',
    model: 'planned',
    data: [{ object: 'embedding', index: 0, embedding: [0.25, 0.5] }],
    usage: { prompt_tokens, total_tokens: prompt_tokens },
  };
}

interface Writer {
  write(text: string): Promise<void>;
  end(): void;
}

class PlannedAnswer {
  readonly #plan: Plan;
  readonly #response: ServerResponse;
  readonly #gone: Promise<void>;
  readonly #note: (what: Entry['what'], events: number) => void;
  readonly #hold: () => Promise<void>;

  constructor(
    plan: Plan,
    response: ServerResponse,
    gone: Promise<void>,
    note: (what: Entry['what'], events: number) => void,
    hold: () => Promise<void>,
  ) {
    this.#plan = plan;
    this.#response = response;
    this.#gone = gone;
    this.#note = note;
    this.#hold = hold;
  }

  async send(streamed: boolean): Promise<void> {
    const { hold, events = 3, gapMs = 0, cutAfter, gzip = false } = this.#plan;
    const response = this.#response;
    if (hold === 'head') await this.#wait(this.#hold());
    if (response.destroyed) return this.#note('left', 0);
    response.writeHead(200, {
      'content-type': streamed ? 'text/event-stream' : 'application/json',
      ...(gzip && { 'content-encoding': 'gzip' }),
    });
    response.flushHeaders();
    this.#note('head', 0);
    if (hold === 'body') await this.#wait(this.#hold());
    let sent = 0;
    const { write, end } = this.#writer(gzip);
    if (streamed) {
      for (; sent < events && !response.destroyed; ) {
        if (hold === sent) await this.#wait(this.#hold());
        if (cutAfter === sent) {
          // The platform writes what was given to it with the next turn of the loop.
          await new Promise((resolve) => setImmediate(resolve));
          response.socket?.end();
          return this.#note('left', sent);
        }
        await write(this.#event({ delta: { content: textOf(this.#plan) } }));
        this.#note('event', ++sent);
        if (gapMs > 0) await this.#wait(new Promise((resolve) => setTimeout(resolve, gapMs)));
      }
      if (hold === sent) await this.#wait(this.#hold());
      if (response.destroyed) return this.#note('left', sent);
      if (this.#callsTool) await write(this.#event({ delta: { tool_calls: [{ index: 0, ...this.#toolCall }] } }));
      await write(this.#event({ delta: {}, finish_reason: this.#callsTool ? 'tool_calls' : 'stop' }, true));
      await write('data: [DONE]\n\n');
    } else {
      await this.#wait(new Promise((resolve) => setTimeout(resolve, events * gapMs)));
      if (response.destroyed) return this.#note('left', 0);
      await write(JSON.stringify(this.#whole()));
    }
    if (response.destroyed) return this.#note('left', sent);
    // Before the last byte leaves, so that every response that a client has is in the log.
    this.#note('sent', sent);
    end();
  }

  #writer(gzip: boolean): Writer {
    const response = this.#response;
    if (gzip) {
      const zipped = createGzip();
      zipped.pipe(response);
      return {
        write: (text) => new Promise<void>((resolve) => void zipped.write(text, () => zipped.flush(() => resolve()))),
        end: () => zipped.end(),
      };
    }
    return {
      write: async (text) => {
        if (!response.write(text)) await this.#wait(once(response, 'drain'));
      },
      end: () => response.end(),
    };
  }

  get #callsTool(): boolean {
    return (this.#plan.toolTurns ?? 0) > 0;
  }

  get #toolCall() {
    return { id: `call_${this.#plan.toolTurns}`, type: 'function', function: { name: 'datetime', arguments: '{}' } };
  }

  #wait(what: Promise<unknown>): Promise<unknown> {
    return Promise.race([what, this.#gone]);
  }

  #event(choice: object, withUsage = false): string {
    return `data: ${JSON.stringify({
      id: `up-${this.#plan.tag}`,
      object: 'chat.completion.chunk',
      created: 1,
      model: 'planned',
      choices: [{ index: 0, finish_reason: null, ...choice }],
      ...(withUsage && { usage: usageOf(this.#plan) }),
    })}\n\n`;
  }

  #whole(): unknown {
    const content = textOf(this.#plan).repeat(this.#plan.events ?? 3);
    return {
      id: `up-${this.#plan.tag}`,
      object: 'chat.completion',
      created: 1,
      model: 'planned',
      choices: [
        this.#callsTool
          ? {
              index: 0,
              finish_reason: 'tool_calls',
              message: { role: 'assistant', content, tool_calls: [this.#toolCall] },
            }
          : { index: 0, finish_reason: 'stop', message: { role: 'assistant', content } },
      ],
      usage: usageOf(this.#plan),
    };
  }
}

function textOf({ text = 'word ' }: Plan): string {
  return text;
}

export function usageOf({ promptTokens = 7, completionTokens = 11 }: Plan) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

if (import.meta.main) {
  const file = process.argv[2] ?? '/dev/null';
  const upstream = await new PlannedUpstream((entry) => {
    const line = `${JSON.stringify(entry)}\n`;
    appendFileSync(file, line);
    writeSync(1, line);
  }).listen();
  process.on('SIGUSR2', () => upstream.release());
  writeSync(1, `${JSON.stringify({ url: upstream.url })}\n`);
}

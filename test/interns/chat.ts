/** The chat of an intern as a client uses it. */
import assert from 'node:assert/strict';
import { EventReader } from '../../src/http/sse.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { type Gateway, INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../workspaces/control.ts';

/** One response while it arrives. */
export class ChatStream {
  readonly status: number;
  /** Data of events, parsed; `[DONE]` as it is. */
  readonly events: Json[] = [];
  comments = 0;
  isOver = false;
  readonly #abort: AbortController;

  constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.#abort = abort;
    void this.#read(response);
  }

  async #read(response: Response): Promise<void> {
    const reader = new EventReader((_, data) => this.events.push(data === '[DONE]' ? data : JSON.parse(data)));
    try {
      for await (const chunk of response.body!) {
        const bytes = Buffer.from(chunk);
        this.comments += bytes.toString().split(': keepalive\n\n').length - 1;
        reader.push(bytes);
      }
    } catch {}
    this.isOver = true;
  }

  leave(): void {
    this.#abort.abort();
  }

  /** All events of a response that has ended. */
  async whole(withinMs?: number): Promise<Json[]> {
    await until(() => this.isOver, 'the response has ended', withinMs);
    return this.events;
  }

  text(part: 'content' | 'reasoning' = 'content'): string {
    return this.events.map(({ choices }) => choices?.[0]?.delta?.[part] ?? '').join('');
  }

  /** Its last chunk, after checking that it ends as every response does. */
  async ending(
    withinMs?: number,
  ): Promise<{ finish: string; error: Json; call: Json; session: string; usage: Json; models: string[] }> {
    const events = await this.whole(withinMs);
    assert.equal(events.at(-1), '[DONE]', JSON.stringify(events));
    const chunks = events.slice(0, -1);
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
    assert.match(chunks[0].id, /^chatcmpl-/);
    assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
    const [finish, final] = chunks.slice(-2);
    assert.deepEqual(final.choices, []);
    const finishes = chunks.filter(({ choices }) => choices[0]?.finish_reason);
    assert.deepEqual(finishes, [finish]);
    const call = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])[0];
    return {
      ...{ finish: finish.choices[0].finish_reason, error: finish.error, call },
      ...{ session: final.session_id, usage: final.usage, models: chunks.map(({ model }) => model) },
    };
  }

  /** The reason of the error that ends it. */
  async reason(): Promise<[number, string]> {
    const { finish, error } = await this.ending();
    assert.equal(finish, 'error');
    return [error.code, error.metadata.reason];
  }
}

export function chatWith({ api }: Pick<Gateway, 'api'>, internId: string, token = INFERENCE_KEY) {
  const send = async (
    body: Json,
    abort = new AbortController(),
  ): Promise<{ response: Response; abort: AbortController }> => ({
    response: await fetch(`${api}/interns/${internId}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ stream: true, ...body }),
      signal: abort.signal,
    }),
    abort,
  });
  const stream = async (body: Json): Promise<ChatStream> => {
    const { response, abort } = await send(body);
    assert.equal(response.status, 200, response.status === 200 ? '' : await response.text());
    return new ChatStream(response, abort);
  };
  return {
    send,
    stream,
    prompt: (text: string, more: Json = {}) => stream({ messages: [{ role: 'user', content: text }], ...more }),
    answer: (call: Json, session_id: string, content: string) => stream(answerBody(call, session_id, content)),
    /** Status and body of a response that is no stream. */
    async plain(body: Json): Promise<{ status: number; body: Json }> {
      const { response } = await send(body);
      return { status: response.status, body: await response.json() };
    },
  };
}

export function answerBody(call: Json, session_id: string, content: string): Json {
  const { id, function: called } = call;
  return {
    session_id,
    messages: [
      { role: 'assistant', content: null, tool_calls: [{ id, function: called }] },
      { role: 'tool', tool_call_id: id, content },
    ],
  };
}

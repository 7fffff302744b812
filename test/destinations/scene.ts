/** A gateway with a scripted system that receives its records. */
import assert from 'node:assert/strict';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { oncePassed } from '../batches/batches-client.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

export { oncePassed };

export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export class System {
  readonly received: Received[] = [];
  /** The status of each answer; null: never answers. */
  answer: (request: Received) => number | null = () => 200;
  url = '';
  readonly #server = http.createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    const got = { method: request.method!, path: request.url!, headers: request.headers, body };
    this.received.push(got);
    const status = this.answer(got);
    if (status !== null) response.writeHead(status).end('{}');
  });

  async listen(): Promise<this> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Requests to a path that are not tests of a connection. */
  at(path: string): Received[] {
    return this.received.filter((each) => each.path === path && each.headers['x-test-connection'] === undefined);
  }

  /** Spans that arrived at a path, each as its members with its attributes by name. */
  spans(path: string): Json[] {
    return this.at(path).flatMap(({ body }) =>
      (JSON.parse(body).resourceSpans as Json[]).flatMap(({ scopeSpans }) =>
        (scopeSpans as Json[]).flatMap(({ spans }) =>
          (spans as Json[]).map((span) => ({ ...span, attributes: attributesOf(span.attributes) })),
        ),
      ),
    );
  }
}

export function attributesOf(list: Json[]): Record<string, Json> {
  return Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));
}

export async function startScene(test: { after(close: () => unknown): void }, options: Json = {}) {
  const system = await new System().listen();
  test.after(() => system.close());
  const gateway = await startGateway(test as never, {
    providers: { a: { model: { pricing: { prompt: '0.000003', completion: '0.000015' } } } },
    yaml: { egress: { networks: ['127.0.0.1'], ports: ['1-65535'] } },
    ...options,
  });
  gateway.upstream.script('a', [{ ...wholeOf(chatReply({ text: 'hello' })), repeat: true }]);
  const control = controlOf(gateway);
  let made = 0;
  return {
    ...{ gateway, system, control },
    /** A workspace that forwards its generations, and a key of it. */
    async workspace(more: Json = {}) {
      made += 1;
      const body = { name: `w${made}`, slug: `w${made}`, is_observability_broadcast_enabled: true, ...more };
      const { id } = await control.made(body);
      const key = await control.keyIn(id, `key of w${made}`);
      return {
        id,
        key,
        async destination(body: Json): Promise<Json> {
          const answer = await control.call('POST', '/observability/destinations', {
            ...{ name: `d${Math.random()}`, workspace_id: id },
            ...body,
          });
          assert.equal(answer.status, 201, JSON.stringify(answer.body));
          return answer.body.data;
        },
        /** @returns the generation's id */
        async ask(more: Json = {}): Promise<string> {
          const { status, body } = await key.ask({ model: 'test/a', max_tokens: 50, ...more });
          assert.equal(status, 200, JSON.stringify(body));
          return body.id;
        },
      };
    },
    async deliveryIs(id: string, isDone: (delivery: Json) => boolean): Promise<Json> {
      const read = async () => (await control.call('GET', `/observability/destinations/${id}`)).body.data.delivery;
      return oncePassed(read, isDone, `the delivery of ${id}`);
    },
    spansAt: (path: string, count = 1): Promise<Json[]> =>
      oncePassed(
        () => system.spans(path),
        (spans) => spans.length >= count,
        `${count} spans at ${path}`,
      ),
  };
}

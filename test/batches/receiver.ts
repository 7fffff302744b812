/** A receiver of callbacks, which plays a list of answers and keeps what it got. */
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type Json, oncePassed } from './batches-client.ts';

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  event: Json;
}

type Answer = number | ((request: IncomingMessage, response: ServerResponse) => void);

export class Receiver {
  readonly received: Received[] = [];
  /** Used one after the other; the last one repeats. */
  answers: Answer[] = [200];
  url = '';
  readonly #server = http.createServer((request, response) => void this.#take(request, response));

  async listen(): Promise<this> {
    await new Promise<void>((listening) => this.#server.listen(0, '127.0.0.1', listening));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
    return this;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Of one batch, in order. */
  of(batchId: string): Received[] {
    return this.received.filter(({ event }) => event.data.id === batchId);
  }

  got(batchId: string, count = 1): Promise<Received[]> {
    return oncePassed(
      () => this.of(batchId),
      (all) => all.length >= count,
      `${count} callbacks of ${batchId}`,
    );
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await buffer(request)).toString();
    this.received.push({ path: request.url ?? '', headers: request.headers, body, event: JSON.parse(body) });
    const answer = this.answers.length > 1 ? this.answers.shift()! : this.answers[0]!;
    if (typeof answer === 'number') response.writeHead(answer).end('thank you');
    else answer(request, response);
  }
}

/** A collector of traces for tests: accepts OTLP/HTTP in both encodings and shows the spans. */
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { until } from '../clock/clock.ts';
import { type CollectedSpan, type CollectedTraces, decodeTraces } from './otlp-decoder.ts';

interface Collected {
  headers: IncomingHttpHeaders;
  path: string;
  traces: CollectedTraces[];
}

export class OtlpCollector {
  readonly received: Collected[] = [];
  /** The status of each answer; null: it never answers. */
  status: number | null = 200;
  /** Requests that arrived, understood or not. */
  requests = 0;
  url = '';
  readonly #server = http.createServer(async (request, response) => {
    this.requests += 1;
    const body = await buffer(request);
    const { headers, url = '' } = request;
    if (this.status === 200)
      this.received.push({ headers, path: url, traces: decodeTraces(body, headers['content-type']) });
    if (this.status !== null) response.writeHead(this.status).end();
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

  get spans(): CollectedSpan[] {
    return this.received.flatMap(({ traces }) => traces.flatMap(({ spans }) => spans));
  }

  /** The spans of one trace, once they have arrived: a request is sent as a whole. */
  async trace(traceId: string): Promise<CollectedSpan[]> {
    const found = () => this.spans.filter((span) => span.traceId === traceId);
    await until(() => found().length > 0, `spans of ${traceId}`);
    return found();
  }
}

/** A small HTTP server of a test that answers by a function and remembers what it was asked. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RecordedRequest {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface RecordingServer {
  /** Without a trailing slash. */
  url: string;
  asked: RecordedRequest[];
  close(): Promise<void>;
}

/** @param answer a value is sent as JSON, a number is a status without a body */
export async function startRecordingServer(answer: (request: RecordedRequest) => unknown): Promise<RecordingServer> {
  const asked: RecordedRequest[] = [];
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = request;
    const recorded = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
    asked.push(recorded);
    const value = answer(recorded);
    response.setHeader('metadata-flavor', 'Google');
    if (typeof value === 'number') response.writeHead(value).end();
    else if (typeof value === 'string') response.writeHead(200, { 'content-type': 'text/plain' }).end(value);
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

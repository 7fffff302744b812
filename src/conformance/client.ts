/** The client of the suite: one request over a connection of its own, everything that comes back, and how it ended. */
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Clock } from '../base/clock.ts';

export interface Sent {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  clock: Clock;
  /** Called with everything received so far. */
  onText?: (text: string, leave: () => void) => void;
  /** Closes the connection. */
  leaves?: Promise<void>;
}

export interface Reply {
  /** 0 if no response came. */
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** `complete` as HTTP says, `broken` within the response, `left` by this client, `silent` for too long. */
  end: 'complete' | 'broken' | 'left' | 'silent';
}

/** Of the whole request. A gateway may retry for a while. */
const PATIENCE_MS = 30_000;
const MAX_TEXT = 128 * 1024 * 1024;

/** Never rejects: a connection that fails is a reply with status 0. */
export function send({ url, headers, body, clock, onText, leaves }: Sent): Promise<Reply> {
  return new Promise((resolve) => {
    const reply: Reply = { status: 0, headers: {}, text: '', end: 'broken' };
    const start = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request: ClientRequest = start(url, {
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        ...headers,
      },
    });
    const stop = (end: Reply['end']) => {
      reply.end = end;
      request.destroy();
    };
    const patience = clock.timer(PATIENCE_MS, () => stop('silent'));
    const leave = () => stop('left');
    void leaves?.then(leave);
    request.on('error', () => {});
    request.on('close', () => {
      patience.cancel();
      resolve(reply);
    });
    request.on('response', (response) => {
      reply.status = response.statusCode ?? 0;
      reply.headers = response.headers;
      response.setEncoding('utf8');
      response.on('error', () => {});
      response.on('data', (text: string) => {
        reply.text += text;
        if (reply.text.length > MAX_TEXT) stop('broken');
        else onText?.(reply.text, leave);
      });
      response.on('end', () => {
        if (reply.end === 'broken' && response.complete) reply.end = 'complete';
      });
    });
    request.end(body);
  });
}

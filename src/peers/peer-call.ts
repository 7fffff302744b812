/** The asking end. */
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { StringDecoder } from 'node:string_decoder';
import type { ConnectionOptions } from 'node:tls';
import type { Clock } from '../base/clock.ts';
import { JSON_TYPE, type PeerAddress, type PeerStream, type PeerStreamReader, TLS } from './peer.ts';

interface PeerCall {
  body: object;
  clock: Clock;
  /** Of the answer, or its head. */
  withinMs: number;
  /** A stream counts as broken after this long without data. */
  silentMs: number;
  /** Disconnects, whatever has arrived. */
  signal: AbortSignal;
}

export type PeerAnswer = { readonly reply: unknown } | { readonly stream: PeerStream };

/** No answer. `asked`: the request may have arrived, and may have been handled. */
export class PeerUnreachable extends Error {
  readonly asked: boolean;

  constructor(asked: boolean, cause: unknown) {
    super('the other process does not answer', { cause });
    this.asked = asked;
  }
}

const CONNECT_MS = 5_000;
const MOST_REPLY_BYTES = 1024 * 1024;

/** Asks another process. @throws PeerUnreachable */
export async function callPeer({ host, port, id, key }: PeerAddress, call: PeerCall): Promise<PeerAnswer> {
  const { promise: head, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  let asked = false;
  const options: RequestOptions & Pick<ConnectionOptions, 'pskCallback'> = {
    ...{ host, port, method: 'POST', path: '/', agent: false, signal: call.signal, ...TLS },
    pskCallback: () => ({ psk: key, identity: id }),
    // Knowing the key proves the identity, so there is no certificate to check.
    checkServerIdentity: () => undefined,
    headers: { 'content-type': JSON_TYPE },
  };
  const request = httpsRequest(options);
  request.on('socket', (socket) => {
    socket.once('secureConnect', () => {
      asked = true;
      connecting.cancel();
    });
  });
  request.on('response', resolve);
  request.on('error', reject);
  const connecting = call.clock.timer(CONNECT_MS, () => request.destroy(new Error('no connection in time')));
  const late = call.clock.timer(call.withinMs, () => request.destroy(new Error('no answer in time')));
  request.end(JSON.stringify(call.body));
  try {
    const response = await head;
    if (response.headers['content-type'] !== JSON_TYPE) return { stream: new ArrivingStream(response, call) };
    return { reply: JSON.parse(await textOf(response)) };
  } catch (error) {
    request.destroy();
    throw new PeerUnreachable(asked, error);
  } finally {
    connecting.cancel();
    late.cancel();
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const decoder = new StringDecoder();
  let text = '';
  for await (const chunk of response as AsyncIterable<Buffer>) {
    text += decoder.write(chunk);
    if (text.length > MOST_REPLY_BYTES) throw new Error('the reply is too long');
  }
  return text;
}

class ArrivingStream implements PeerStream {
  readonly #response: IncomingMessage;
  readonly #call: PeerCall;

  constructor(response: IncomingMessage, call: PeerCall) {
    this.#response = response;
    this.#call = call;
    response.pause();
  }

  read(reader: PeerStreamReader): void {
    const response = this.#response;
    const decoder = new StringDecoder();
    const silence = this.#call.clock.timer(this.#call.silentMs, () => {
      // While reading is paused, silence does not mean that the connection is broken.
      if (response.isPaused()) silence.refresh();
      else response.destroy();
    });
    response.on('data', (chunk: Buffer) => {
      silence.refresh();
      if (!reader.data(decoder.write(chunk))) response.pause();
    });
    response.on('error', () => {});
    response.on('close', () => {
      silence.cancel();
      if (!this.#call.signal.aborted) reader.over();
    });
    response.resume();
  }

  resume(): void {
    this.#response.resume();
  }
}

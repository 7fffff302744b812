/** A text that does not change while the process lives: made when it is first asked for, with an ETag, compressed once. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Exchange } from '../http/operation.ts';

interface Prepared {
  body: Buffer;
  compressed: Buffer;
  etag: string;
}

export class StaticText {
  readonly #make: () => string;
  readonly #headers: Readonly<Record<string, string>>;
  #text: string | undefined;
  #prepared: Promise<Prepared> | undefined;

  constructor(make: () => string, headers: Readonly<Record<string, string>>) {
    this.#make = make;
    this.#headers = headers;
  }

  get text(): string {
    this.#text ??= this.#make();
    return this.#text;
  }

  async answer<C>(exchange: Pick<Exchange<C>, 'headers' | 'response'>): Promise<void> {
    this.#prepared ??= this.#prepare();
    const { body, compressed, etag } = await this.#prepared;
    const { headers, response } = exchange;
    if (response.destroyed) return;
    const common = { ETag: etag, 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding' };
    if (headers['if-none-match']?.includes(etag)) {
      response.writeHead(304, common);
      response.end();
      return;
    }
    const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(headers['accept-encoding'] ?? ''));
    const chosen = takesGzip ? compressed : body;
    response.writeHead(200, {
      ...this.#headers,
      ...common,
      'Content-Length': chosen.length,
      ...(takesGzip && { 'Content-Encoding': 'gzip' }),
    });
    response.end(chosen);
  }

  async #prepare(): Promise<Prepared> {
    const body = Buffer.from(this.text);
    const etag = `W/"${hash('sha256', body, 'base64url').slice(0, 22)}"`;
    return { body, etag, compressed: await promisify(gzip)(body) };
  }
}

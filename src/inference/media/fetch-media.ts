/**
 * Fetches the media of one request for providers that accept only bytes. Each URL is fetched once, however many
 * endpoints are tried. Number, total size and time are limited per request.
 */
import type { Limits } from '../../base/config.ts';
import { type ErrorType, GatewayError } from '../../base/errors.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import { type Egress, EgressError, type EgressReply } from '../../egress/index.ts';
import type { Source } from '../../formats/conversation/conversation.ts';
import type { MediumKind } from '../../formats/conversation/format.ts';
import type { RemoteMedium } from './remote.ts';

interface Medium {
  mediaType: string;
  bytes: Buffer;
}

export class MediaFetcher {
  readonly #egress: Egress;
  readonly #limits: Limits;
  readonly #pathOf: (url: string) => string;
  readonly #fetched = new Map<string, Promise<Medium>>();
  #leftBytes: number;

  /** @param pathOf the field that holds a URL, for error messages */
  constructor(egress: Egress, limits: Limits, pathOf: (url: string) => string) {
    this.#egress = egress;
    this.#limits = limits;
    this.#pathOf = pathOf;
    this.#leftBytes = limits.fetchedMediaBytes;
  }

  /**
   * Fetches every URL in parallel. The first failure aborts the others.
   * @throws GatewayError 400 with the field's path
   */
  async all(addresses: ReadonlyMap<string, RemoteMedium>, signal: AbortSignal): Promise<Map<string, Medium>> {
    const urls = [...addresses.keys()];
    const limit = this.#limits.fetchedMedia;
    const beyond = urls.filter((url) => !this.#fetched.has(url))[limit - this.#fetched.size];
    if (beyond !== undefined) {
      throw new GatewayError('invalid_request', `${this.#pathOf(beyond)} exceeds the limit of ${limit} media URLs`, {
        path: this.#pathOf(beyond),
      });
    }
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    try {
      const media = await Promise.all(urls.map((url) => this.#one(url, addresses.get(url)!, either)));
      return new Map(urls.map((url, index) => [url, media[index]!]));
    } catch (error) {
      stop.abort();
      throw error;
    }
  }

  #one(url: string, medium: RemoteMedium, signal: AbortSignal): Promise<Medium> {
    let pending = this.#fetched.get(url);
    if (pending === undefined) {
      pending = this.#fetchOne(url, medium, signal);
      this.#fetched.set(url, pending);
      // A failed fetch is repeated for the next endpoint that needs the URL, within the same limits.
      pending.catch(() => this.#fetched.delete(url));
    }
    return pending;
  }

  async #fetchOne(url: string, { kind, times }: RemoteMedium, signal: AbortSignal): Promise<Medium> {
    const { fetchedMediumBytes, mediaFetchMs } = this.#limits;
    let reply: EgressReply;
    try {
      const maxBytes = Math.min(fetchedMediumBytes, this.#leftBytes);
      reply = await this.#egress.request({ url, maxBytes, timeoutMs: mediaFetchMs, signal });
    } catch (error) {
      throw error instanceof EgressError ? this.#refusal(url, kind, error) : error;
    }
    if (reply.status >= 300) throw this.#refuse(url, kind, 'image_download_failed', `answered ${reply.status}`);
    // A body has the content once for each part that uses the URL.
    const bytes = reply.body.length * times;
    if (bytes > this.#leftBytes) {
      const problem = `brings the media of this request over the limit of ${this.#limits.fetchedMediaBytes} bytes`;
      throw this.#refuse(url, kind, 'image_too_large', problem);
    }
    this.#leftBytes -= bytes;
    const mediaType = mediaTypeOf(reply, kind);
    if (mediaType === undefined) {
      const contentType = /^[\w.+-]+\/[\w.+-]+/.exec(reply.headers['content-type'] ?? '')?.[0];
      const what = { image: 'an image', file: 'a document', audio: 'audio', video: 'a video' }[kind];
      const problem = `points to content that is not ${what}${contentType === undefined ? '' : ` (${contentType})`}`;
      throw this.#refuse(url, kind, 'unsupported_image_format', problem);
    }
    return { mediaType, bytes: reply.body };
  }

  #refusal(url: string, kind: MediumKind, { fault, message }: EgressError): GatewayError {
    if (fault === 'busy') {
      return new GatewayError('provider_overloaded', `${this.#pathOf(url)} ${message}`, { retryAfterSeconds: 1 });
    }
    return this.#refuse(url, kind, fault === 'size' ? 'image_too_large' : 'image_download_failed', message);
  }

  /** The error types for media exist for images only. */
  #refuse(url: string, kind: MediumKind, type: ErrorType, problem: string): GatewayError {
    const path = this.#pathOf(url);
    return new GatewayError(kind === 'image' ? type : 'invalid_request', `${path} ${problem}`, { path });
  }
}

/** A text document has no signature: its content type then counts, provided that the bytes are valid text. */
function mediaTypeOf({ body, headers }: EgressReply, kind: MediumKind): string | undefined {
  const sniffed = sniffMediaType(body);
  if (kind !== 'file') {
    // Audio and video share container formats.
    const fits = kind === 'image' ? /^image\// : /^(?:audio|video)\//;
    return sniffed !== undefined && fits.test(sniffed) ? sniffed : undefined;
  }
  if (sniffed !== undefined) return sniffed;
  const label = /^[\w.+-]+\/[\w.+-]+/.exec(headers['content-type'] ?? '')?.[0].toLowerCase();
  const text = label !== undefined && /^text\/|[/+](?:json|xml|yaml|javascript)$/.test(label);
  return text && isText(body) ? label : undefined;
}

function isText(bytes: Buffer): boolean {
  return !bytes.includes(0) && Buffer.from(bytes.toString('utf8')).equals(bytes);
}

export function sourceOf({ mediaType, bytes }: Medium): Source {
  return { kind: 'bytes', mediaType, data: bytes.toString('base64') };
}

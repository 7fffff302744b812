/** One request of a sandbox: checked, sent with the secrets of its host, and answered. */
import { Http2ServerRequest } from 'node:http2';
import type { Allowance } from '../../base/allowance.ts';
import type { Destination } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Release } from '../text/release.ts';
import type { Replacer } from '../text/replacer.ts';
import { syntaxOf } from '../text/value-forms.ts';
import { checkTransfer, codingsOf, type HeldBody, held, pump } from './bodies.ts';
import { headerOf, type Pair, pairsOf, releasedHead } from './heads.ts';
import { bodyOf } from './received-body.ts';
import { respond, type ServerRequest, type ServerResponse } from './respond.ts';
import type { Answer, Body, BodyLength, Outgoing, Sent } from './send.ts';

interface Passage {
  destination: Destination;
  release: Release;
  allowance: Allowance;
  send(outgoing: Outgoing, request: ServerRequest): Sent | Promise<Sent>;
}

/**
 * Forwards one request and its response.
 * @param path as it is sent to the host, without secrets
 * @throws Refusal, or what broke
 */
export async function exchange(
  passage: Passage,
  { path, pairs }: { path: string; pairs: readonly Pair[] },
  request: ServerRequest,
  response: ServerResponse,
): Promise<void> {
  const { destination, release, allowance } = passage;
  const head = releasedHead({ method: request.method ?? 'GET', path, pairs }, release);
  const body = await RequestBody.of(request, pairs, release, allowance);
  try {
    const sent = await passage.send({ head, destination, length: body.length }, request);
    const abort = () => sent.abort();
    response.once('close', abort);
    if (response.destroyed) abort();
    const writing = body.writeTo(sent, release);
    const answer = writing === undefined ? await sent.answer : await answerDuring(writing, sent, response);
    await respond(answer, request, response, release.texts, allowance);
    response.removeListener('close', abort);
    if (writing !== undefined) await written(writing, sent, request);
  } finally {
    body.letGo();
  }
}

/** A host may answer before it has read the body, whose rest is still checked and sent while the client is there. */
async function written(writing: Promise<void>, sent: Sent, request: ServerRequest): Promise<void> {
  const isHttp2 = request instanceof Http2ServerRequest;
  const client = isHttp2 ? request.stream : request.socket;
  const abort = () => {
    // A stream of HTTP/2 closes once both sides have ended.
    if (!isHttp2 || !client.readableEnded) sent.abort();
  };
  client.once('close', abort);
  if (client.destroyed) abort();
  try {
    await writing;
  } catch (error) {
    sent.abort();
    throw error;
  } finally {
    client.removeListener('close', abort);
  }
}

/** The answer to a request whose body is still being written. */
async function answerDuring(writing: Promise<void>, sent: Sent, response: ServerResponse): Promise<Answer> {
  const failing = writing.then(() => sent.answer);
  try {
    const answer = await Promise.race([sent.answer, failing]);
    failing.catch(() => response.destroy());
    return answer;
  } catch (error) {
    failing.catch(() => {});
    // Not before its reason is known: a refused body breaks the request.
    sent.abort();
    throw error;
  }
}

/** A request's body, as a whole if it is small. */
class RequestBody {
  readonly length: BodyLength;
  readonly #request: ServerRequest;
  readonly #body: Body | undefined;
  readonly #replacer: Replacer | undefined;
  readonly #held: HeldBody | undefined;

  private constructor(request: ServerRequest, length: BodyLength, body?: Body, replacer?: Replacer, whole?: HeldBody) {
    this.#request = request;
    this.length = length;
    this.#body = body;
    this.#replacer = replacer;
    this.#held = whole;
  }

  static async of(request: ServerRequest, pairs: readonly Pair[], release: Release, allowance: Allowance) {
    const declared = headerOf(pairs, 'content-length');
    if (!hasBody(request, pairs, declared)) return new RequestBody(request, 'none');
    checkTransfer(pairs);
    const body = bodyOf(request);
    const isEncoded = codingsOf(pairs).length > 0;
    const syntax = isEncoded ? null : syntaxOf(headerOf(pairs, 'content-type'));
    const replacer = release.body(syntax);
    if (syntax === null)
      return new RequestBody(request, declared === undefined ? 'unknown' : Number(declared), body, replacer);
    // Trailers follow a body that is streamed.
    const known = headerOf(pairs, 'trailer') === undefined ? Number(declared ?? Number.NaN) : Number.NaN;
    // A small body arrives together with its head, and the parser has passed it on when the next microtask runs.
    await undefined;
    const whole = await held(body, known, replacer, allowance);
    return new RequestBody(request, whole?.length ?? 'unknown', body, replacer, whole);
  }

  /** Undefined if that was done at once. */
  writeTo(sent: Sent, release: Release): Promise<void> | undefined {
    if (this.#body === undefined) return void sent.finish([]);
    if (this.#held !== undefined) return this.#held.endOn(sent.body);
    return this.#stream(this.#body, this.#replacer!, sent, release);
  }

  /** Gives back its memory. */
  letGo(): void {
    this.#held?.letGo();
  }

  async #stream(body: Body, replacer: Replacer, sent: Sent, release: Release): Promise<void> {
    // A client that is still sending must be able to read the response or the refusal.
    const isSent = await pump(body.stream.iterator({ destroyOnReturn: false }), replacer, sent.body);
    if (!isSent) return void body.stream.resume();
    const trailers = releasedHead({ method: '', path: '', pairs: pairsOf(this.#request.rawTrailers) }, release).pairs;
    sent.finish(trailers);
  }
}

function hasBody(request: ServerRequest, pairs: readonly Pair[], declared: string | undefined): boolean {
  if (request instanceof Http2ServerRequest) return !request.stream.endAfterHeaders;
  return declared !== undefined || headerOf(pairs, 'transfer-encoding') !== undefined;
}

/** Refuses what is no path of this connection's host, such as a whole URL. */
export function checkPath(url: string, method: string | undefined): void {
  if (url.startsWith('/') || (url === '*' && method === 'OPTIONS')) return;
  throw new Refusal('bad_request', 'Inside of a tunnel a request has a path, not a URL.');
}

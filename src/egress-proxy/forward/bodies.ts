/** Bodies on their way through the proxy: streamed, or as a whole where their length must be known. */
import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Allowance } from '../../base/allowance.ts';
import { Refusal } from '../refusal.ts';
import type { Replacer } from '../text/replacer.ts';
import { headerOf, type Pair } from './heads.ts';
import type { Body } from './send.ts';

/** Longer bodies are not held. */
const MOST_HELD_BYTES = 256 * 1024;
/** Bodies that are longer with their secrets are not joined. */
const MOST_JOINED_BYTES = 64 * 1024;

/** Where a body is written; a request or response of either version of HTTP. */
export interface Sink {
  readonly destroyed: boolean;
  once(event: 'drain' | 'close', listener: () => void): unknown;
  removeListener(event: 'drain' | 'close', listener: () => void): unknown;
  write(bytes: Buffer): boolean;
  end(): unknown;
  end(text: string, encoding: 'latin1'): unknown;
}

/** Writes a stream to the sink, replaced. False if it ended early, because the sink is destroyed. */
export async function pump(source: AsyncIterable<Buffer>, replacer: Replacer, sink: Sink): Promise<boolean> {
  for await (const chunk of source) {
    if (!(await writeAll(replacer.push(chunk), sink))) return false;
  }
  return writeAll(replacer.end(), sink);
}

/** Writes pieces as fast as the sink takes them. False if it is destroyed. */
async function writeAll(pieces: Iterable<Buffer>, sink: Sink): Promise<boolean> {
  for (const piece of pieces) {
    if (sink.destroyed) return false;
    if (!sink.write(piece)) await writable(sink);
  }
  return !sink.destroyed;
}

function writable(sink: Sink): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      sink.removeListener('drain', go);
      sink.removeListener('close', go);
      resolve();
    };
    sink.once('drain', go);
    sink.once('close', go);
    if (sink.destroyed) go();
  });
}

/** A whole body, replaced: the pieces share memory with it and with the replacements. */
export class HeldBody {
  readonly length: number;
  readonly #pieces: readonly Buffer[];
  #letGo: (() => void) | undefined;

  constructor(pieces: readonly Buffer[], letGo: () => void) {
    this.#pieces = pieces;
    this.length = pieces.length === 1 ? pieces[0]!.length : pieces.reduce((sum, { length }) => sum + length, 0);
    this.#letGo = letGo;
  }

  /** Writes it, ends the sink, and gives its memory back. At once if it is small. */
  endOn(sink: Sink): Promise<void> | undefined {
    if (this.length > MOST_JOINED_BYTES) return this.#endInPieces(sink);
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    // A string is sent together with the head, in one write.
    sink.end(whole.toString('latin1'), 'latin1');
    this.letGo();
    return undefined;
  }

  async #endInPieces(sink: Sink): Promise<void> {
    if (await writeAll(this.#pieces, sink)) sink.end();
    this.letGo();
  }

  /** Gives its memory back, if it could not be written. Idempotent. */
  letGo(): void {
    this.#letGo?.();
    this.#letGo = undefined;
  }
}

/**
 * Reads a whole body, if it is small and memory for it is left.
 * @param declared its length; NaN if it is not known
 * @returns undefined: it has to be streamed
 */
export async function held(
  body: Body,
  declared: number,
  replacer: Replacer,
  allowance: Allowance,
): Promise<HeldBody | undefined> {
  if (!(declared <= MOST_HELD_BYTES) || !allowance.take(declared)) return undefined;
  try {
    const whole = body.whole ?? (await wholeOf(body.stream, declared));
    return new HeldBody([...replacer.push(whole), ...replacer.end()], () => allowance.release(declared));
  } catch (error) {
    allowance.release(declared);
    throw error;
  }
}

/** The bytes of a stream. An iterator would cost more than everything else that happens to a small body. */
function wholeOf(source: Readable, declared: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    source.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > declared) reject(new Error('longer than declared'));
      else chunks.push(chunk);
    });
    let isWhole = false;
    source.once('end', () => {
      isWhole = true;
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    source.once('error', reject);
    source.once('close', () => {
      if (!isWhole) reject(new Error('cut'));
    });
  });
}

/** Content codings that are one after the other in a response. More are an attack. */
const MOST_CODINGS = 2;
const NO_CODINGS: readonly string[] = [];

const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** The codings of a body, `identity` aside. The header may occur more than once. */
export function codingsOf(pairs: readonly Pair[]): readonly string[] {
  return listed(pairs, 'content-encoding');
}

/** What a header lists, in lower case, without `identity`. It may occur more than once. */
function listed(pairs: readonly Pair[], header: string): readonly string[] {
  if (headerOf(pairs, header) === undefined) return NO_CODINGS;
  const values = pairs.filter(([, , name]) => name === header).map(([, value]) => value);
  const codings = values.join().toLowerCase().split(',');
  return codings.map((coding) => coding.trim()).filter((coding) => coding !== '' && coding !== 'identity');
}

/** @throws Refusal if a message of HTTP/1.1 has transfer codings besides `chunked`, which the parser does not undo */
export function checkTransfer(pairs: readonly Pair[]): void {
  const codings = listed(pairs, 'transfer-encoding');
  if (codings.length === 0 || (codings.length === 1 && codings[0] === 'chunked')) return;
  throw uncheckable('transfer-encoded', codings);
}

function uncheckable(how: string, codings: readonly string[]): Refusal {
  const shown = JSON.stringify(codings.slice(0, 3));
  return new Refusal('encoding', `The message is ${how} as ${shown}, which cannot be checked.`);
}

/** The body without its codings. @throws Refusal if one is unknown */
export function decoded(body: Body, codings: readonly string[]): Body {
  const decoders = codings.map((coding) => DECODERS[coding]);
  if (codings.length > MOST_CODINGS || decoders.includes(undefined)) {
    throw uncheckable('encoded', codings);
  }
  let { stream } = body;
  for (const create of decoders.toReversed()) {
    const next = create!();
    const from = stream;
    // Nothing may read it: then an error without a listener would end the process.
    next.on('error', () => {});
    from.on('error', (error) => next.destroy(error));
    from.on('close', () => {
      if (!from.readableEnded) next.destroy(new Error('cut'));
    });
    next.on('close', () => from.destroy());
    stream = from.pipe(next);
  }
  return { whole: undefined, stream };
}

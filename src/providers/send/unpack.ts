/**
 * Decompresses `content-encoding` as bytes arrive: whatever a chunk completes is delivered at once, so compressed
 * events are not delayed. The receiver limits the output by pausing or aborting.
 */
import {
  type BrotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  type Inflate,
  type InflateRaw,
} from 'node:zlib';

type Unzip = Gunzip | Inflate | InflateRaw | BrotliDecompress;

type Encoding = 'gzip' | 'deflate' | 'br';

/** Reads the header: null for a plain body, undefined for an unsupported encoding. */
export function readEncoding(header: string | undefined): Encoding | null | undefined {
  switch ((header ?? '').trim().toLowerCase()) {
    case '':
    case 'identity':
      return null;
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    case 'br':
      return 'br';
    default:
      return undefined;
  }
}

export interface UnpackedReceiver {
  unpacked(chunk: Buffer): void;
  unpackedEnd(): void;
  /** The compressed data is damaged or truncated. */
  unpackFailed(): void;
  /** The source may continue after `write` returned false. */
  unpackDrained(): void;
}

export class Unpacker {
  readonly #encoding: Encoding;
  readonly #receiver: UnpackedReceiver;
  #unzip: Unzip | undefined;
  #paused = false;
  #afterDrain: (() => void) | undefined;
  /** Replaces the report of damaged data, because the source broke before. */
  #onDamage: (() => void) | undefined;

  constructor(encoding: Encoding, receiver: UnpackedReceiver) {
    this.#encoding = encoding;
    this.#receiver = receiver;
  }

  /** False: the buffer is full; stop the source until `unpackDrained`. */
  write(chunk: Buffer): boolean {
    this.#unzip ??= this.#open(chunk);
    return this.#unzip.write(chunk);
  }

  /** End of the compressed bytes; `unpackedEnd` follows after the last data. */
  end(): void {
    // Zero bytes are an empty body, whatever the header says.
    if (this.#unzip === undefined) this.#receiver.unpackedEnd();
    // A decompressor that ends while it has input loses the output of that input if the data is truncated.
    else this.#afterOutput(() => this.#unzip!.end());
  }

  pause(): void {
    this.#paused = true;
    this.#unzip?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#unzip?.resume();
  }

  /** Calls `run` once everything written has been delivered, for a source that broke. */
  drain(run: () => void): void {
    if (this.#unzip === undefined) {
      run();
      return;
    }
    this.#onDamage = run;
    this.#afterOutput(run);
  }

  /** Stops delivery. */
  destroy(): void {
    this.#afterDrain = undefined;
    this.#unzip?.removeAllListeners('data').removeAllListeners('end').destroy();
  }

  #open(first: Buffer): Unzip {
    const unzip = this.#create(first);
    unzip.on('data', (chunk: Buffer) => this.#receiver.unpacked(chunk));
    unzip.on('end', () => this.#receiver.unpackedEnd());
    unzip.on('error', () => {
      this.#afterDrain = undefined;
      if (this.#onDamage) this.#onDamage();
      else this.#receiver.unpackFailed();
    });
    unzip.on('drain', () => this.#receiver.unpackDrained());
    if (this.#paused) unzip.pause();
    return unzip;
  }

  #create(first: Buffer): Unzip {
    if (this.#encoding === 'gzip') return createGunzip();
    if (this.#encoding === 'br') return createBrotliDecompress();
    // Servers use `deflate` for zlib or raw data; only a zlib header has 8 in its low nibble.
    return (first[0]! & 0x0f) === 8 ? createInflate() : createInflateRaw();
  }

  /** Calls `run` once the output of everything written has been delivered. */
  #afterOutput(run: () => void): void {
    this.#afterDrain = run;
    this.#unzip!.flush(() => this.#settle());
  }

  /** The stream delivers its output in later ticks, and not while paused. */
  #settle(): void {
    setImmediate(() => {
      if (this.#afterDrain === undefined) return;
      if (this.#unzip!.readableLength > 0) {
        this.#unzip!.once('data', () => this.#settle());
        return;
      }
      const run = this.#afterDrain;
      this.#afterDrain = undefined;
      run();
    });
  }
}

/**
 * Undoes `content-encoding` as the bytes come: whatever a compressed chunk completes is delivered at once, so events of
 * a compressed stream are not held back. How much may come out is the receiver's to bound: it can pause and abort.
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

export type Encoding = 'gzip' | 'deflate' | 'br';

/** Reads the header: null for a plain body, undefined for an encoding that is not understood. */
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
  /** The compressed data is damaged, or ends before its own end. */
  unpackFailed(): void;
  /** The source may flow again after `write` returned false. */
  unpackDrained(): void;
}

export class Unpacker {
  readonly #encoding: Encoding;
  readonly #receiver: UnpackedReceiver;
  #unzip: Unzip | undefined;
  #paused = false;
  #afterDrain: (() => void) | undefined;

  constructor(encoding: Encoding, receiver: UnpackedReceiver) {
    this.#encoding = encoding;
    this.#receiver = receiver;
  }

  /** False: enough is waiting, hold the source until `unpackDrained`. */
  write(chunk: Buffer): boolean {
    this.#unzip ??= this.#open(chunk);
    return this.#unzip.write(chunk);
  }

  /** The compressed bytes are over; `unpackedEnd` follows after the last data. */
  end(): void {
    // A body of no bytes is an empty body, whatever its header says.
    if (this.#unzip === undefined) this.#receiver.unpackedEnd();
    else this.#unzip.end();
  }

  pause(): void {
    this.#paused = true;
    this.#unzip?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#unzip?.resume();
  }

  /** Calls `run` once everything that was written has been delivered; for a source that broke. */
  drain(run: () => void): void {
    if (this.#unzip === undefined) {
      run();
      return;
    }
    this.#afterDrain = run;
    this.#unzip.flush(() => this.#settle());
  }

  /** Nothing is delivered any more. */
  destroy(): void {
    this.#afterDrain = undefined;
    this.#unzip?.removeAllListeners('data').removeAllListeners('end').destroy();
  }

  #open(first: Buffer): Unzip {
    const unzip = this.#create(first);
    unzip.on('data', (chunk: Buffer) => this.#receiver.unpacked(chunk));
    unzip.on('end', () => this.#receiver.unpackedEnd());
    unzip.on('error', () => {
      const afterDrain = this.#afterDrain;
      this.#afterDrain = undefined;
      if (afterDrain) afterDrain();
      else this.#receiver.unpackFailed();
    });
    unzip.on('drain', () => this.#receiver.unpackDrained());
    if (this.#paused) unzip.pause();
    return unzip;
  }

  #create(first: Buffer): Unzip {
    if (this.#encoding === 'gzip') return createGunzip();
    if (this.#encoding === 'br') return createBrotliDecompress();
    // Servers mean either of two things by `deflate`; only a zlib header has 8 in its low nibble.
    return (first[0]! & 0x0f) === 8 ? createInflate() : createInflateRaw();
  }

  /** The stream hands its output on in later ticks, and not at all while paused. */
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

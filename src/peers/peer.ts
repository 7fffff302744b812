/** What both ends of a request between processes agree on. */

export const PEER_KEY_BYTES = 32;

export interface PeerAddress {
  readonly host: string;
  readonly port: number;
  /** Of the process that listens. */
  readonly id: string;
  /** Known to the processes of this gateway only. */
  readonly key: Buffer;
}

/** How the process that was asked answers: with `reply`, or with `open`, `write` and `end`. */
export interface PeerResponse {
  /** The other process has disconnected, or has the whole answer. */
  readonly closed: boolean;
  reply(body: object): void;
  open(): void;
  /** Returns false when the other process is slow; `onDrain` follows. */
  write(text: string): boolean;
  end(): void;
  onDrain(run: () => void): void;
  /** Calls `run` once if the other process disconnects before the end. */
  onClose(run: () => void): void;
}

/** A stream as it arrives. */
export interface PeerStreamReader {
  /** Returns false to get nothing more until `PeerStream.resume`. */
  data(text: string): boolean;
  /** The stream has ended or broken; its text shows which. Not called after the process that asked has disconnected. */
  over(): void;
}

export interface PeerStream {
  /** Once. */
  read(reader: PeerStreamReader): void;
  resume(): void;
}

/** Pre-shared key instead of a certificate, with a fresh key for each connection. TLS 1.2 is the only version for which Node supports this. */
export const TLS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const;

export const JSON_TYPE = 'application/json';
export const STREAM_TYPE = 'text/event-stream';

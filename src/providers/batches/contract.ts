/**
 * The batch interface of a provider: many calls in one upload, run within a day at a lower price. One file per vendor
 * implements it; `src/batches/native/` uses nothing else of a vendor.
 */
import type { UpstreamTarget } from '../byok-target.ts';
import type { DeliveryParts } from '../deliver.ts';
import type { Delivery } from '../provider.ts';

/** A call as the provider would receive it alone. */
export type BatchedCall = Pick<Delivery, 'format' | 'path'> & { body: Buffer; model: string };

/** What all calls of one upstream batch have in common. */
export interface BatchAbout {
  /** Our name for the batch, a UUID. The provider stores it where it has a place for it. */
  marker: string;
  /** The upstream's name of the model. */
  model: string;
  format: Delivery['format'];
  /** The path of each call below the base URL. */
  path: string;
  items: number;
  /** Wall time in ms at which it was first sent; an older batch at the provider is another one. */
  beganAt: number;
}

/** An upstream batch that is about to be created. */
export interface Submission extends BatchAbout {
  /** An earlier attempt may have uploaded the content, or a part of it. */
  isRepeated: boolean;
  /** Size of the content; known once it has been opened. */
  readonly bytes: number;
  /** The calls in the provider's own form, for one reading. */
  content(): Promise<AsyncIterable<Buffer>>;
  /** The provider's id of the uploaded content, if it was uploaded before. */
  uploadId: string | null;
  /** Resolves once the id is stored. */
  uploaded(id: string): Promise<void>;
  /** Awaited right before the one request that creates the batch. */
  creating(): Promise<void>;
}

export interface UpstreamBatch {
  id: string;
  /** `running`: nothing can be read yet. The others are final; all but `failed` may have results. */
  state: 'running' | 'completed' | 'failed' | 'expired' | 'cancelled';
  /** Why it failed. */
  message?: string | undefined;
  /** Files at the provider with results and errors, or where else they are. */
  outputs: readonly string[];
}

/** What became of one call. */
export type UpstreamResult =
  | { id: string; kind: 'answered'; status: number; body: Buffer }
  | { id: string; kind: 'failed'; message: string }
  | { id: string; kind: 'expired' | 'cancelled' };

/** Calls to the batch interface of one account. */
export interface BatchAccount {
  target: UpstreamTarget;
  /** Of the client's request, lower case. Those that the kind forwards are sent. */
  clientHeaders: NonNullable<Delivery['clientHeaders']>;
  parts: DeliveryParts;
}

export interface BatchService {
  /** Largest upload, in calls and bytes; `least` calls that it takes. */
  limits: Readonly<{ items: number; bytes: number; least?: number }>;
  /** False: what `find` returns may be another client's batch in the account. */
  storesMarker: boolean;
  /** The batch price in percent of the list price, if the configuration sets no other. */
  pricePercent: number;
  /** What the configuration lacks for this provider to have batches; undefined if nothing. */
  lacks?(target: UpstreamTarget): string | undefined;
  /** Whether a call can be part of a batch. @param clientHeaders as in `BatchAccount` */
  carries(call: BatchedCall, clientHeaders: BatchAccount['clientHeaders']): boolean;
  /** The text before, between and after the calls of an upload. */
  frame(about: Pick<BatchAbout, 'marker' | 'model'>): { head: string; between: string; tail: string };
  /** One call of an upload. @param id letters and digits */
  line(id: string, call: BatchedCall): Buffer;
  /** Creates the batch; resolves with its id. Rejects with `BatchRefusal`. */
  submit(submission: Submission, account: BatchAccount): Promise<string>;
  /**
   * The ids of batches of the account that may have been created by an earlier `submit`, oldest first. Unless it
   * stores the marker these are guesses, to be confirmed by the ids of the results.
   */
  find(about: BatchAbout, uploadId: string | null, account: BatchAccount): Promise<string[]>;
  poll(id: string, account: BatchAccount): Promise<UpstreamBatch>;
  /** In any order. Fails with `BatchRefusal` where the provider breaks off. */
  results(batch: UpstreamBatch, account: BatchAccount): AsyncIterable<UpstreamResult>;
  /** Resolves also for a batch that is over. */
  cancel(id: string, account: BatchAccount): Promise<void>;
  /**
   * Removes what the provider keeps of a final batch, or of an upload without a batch (null). Resolves with false if some
   * of it cannot be removed.
   */
  remove(batch: UpstreamBatch | null, uploadId: string | null, account: BatchAccount): Promise<boolean>;
}

/** The upload and the outputs. */
export function dataOf(batch: UpstreamBatch | null, uploadId: string | null): string[] {
  return [...(uploadId === null ? [] : [uploadId]), ...(batch?.outputs ?? [])];
}

/** The provider refused a call of its batch interface, or did not answer it. */
export class BatchRefusal extends Error {
  /** HTTP status; null without a response. */
  readonly status: number | null;
  /** The same request may succeed later. */
  readonly passing: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, status: number | null, retryAfterMs?: number) {
    super(message);
    this.name = 'BatchRefusal';
    this.status = status;
    this.passing = status === null || status === 408 || status === 409 || status === 429 || status >= 500;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Copies of files at the vendors that conversations are sent to, so that a large file is uploaded once and not with each
 * request. A copy belongs to the account of one credential. Several requests at once, of all processes, upload it once.
 */
import { createHash } from 'node:crypto';
import { type Clock, sleep } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import type { Log } from '../../base/log.ts';
import type { Blobs } from '../../blobs/index.ts';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import type { Transport, UpstreamTarget } from '../../providers/index.ts';
import type { Database } from '../../storage/database.ts';
import type { UsableFile } from '../contents.ts';
import { callVendor } from '../vendor/call.ts';
import * as store from './store.ts';
import { STORES, type VendorStore } from './stores.ts';

/** Where a conversation is sent to. */
interface CopyPlace {
  readonly target: UpstreamTarget;
  /** The BYOK credential of the target; null: the gateway's own. */
  readonly byokId: string | null;
  readonly format: FormatId;
}

export interface VendorCopy {
  readonly fileId: string;
  /** Of the copy's row. */
  readonly id: string;
  readonly vendorId: string;
  /** Beta features that a conversation with it needs. */
  readonly betas: readonly string[];
}

export interface VendorCopies {
  /**
   * The copies that a conversation should name, by the ids of the files. Small files, files that the vendor does not
   * store, and files whose upload fails are left out.
   * @param needs whether a file is too large for the conversation itself, so that waiting for its copy is worth it
   */
  of(
    files: readonly UsableFile[],
    place: CopyPlace,
    needs: (file: UsableFile) => boolean,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, VendorCopy>>;
  /** The vendor does not have them. Never rejects. */
  forget(copies: readonly VendorCopy[]): Promise<void>;
}

interface CopyParts {
  database: Database;
  blobs: Pick<Blobs, 'read'>;
  transport: Transport;
  clock: Clock;
  log: Log;
}

/** Smaller files are sent with each request: an upload costs a round trip. */
const LEAST_BYTES = 256 * 1024;
/** Copies that end sooner are made again. */
const LEFT_MS = 600_000;
/** An upload that takes longer may be repeated by another process. */
const CLAIM_MS = 120_000;
/** After a failed upload, files are sent with each request for this time. */
const PAUSE_MS = 60_000;
const POLL_MS = 1_000;
/** Of a vendor that processes a file. */
const MOST_POLLS = 60;
const MOST_PAUSED = 10_000;

export function createVendorCopies(parts: CopyParts): VendorCopies {
  return new Copies(parts);
}

/** Identifies an account without revealing its credential. */
export function accountOf({ provider, credential }: UpstreamTarget): Buffer {
  return createHash('sha256')
    .update(`file copies\n${provider.baseUrl}\n${credential ?? ''}`)
    .digest();
}

class Copies implements VendorCopies {
  readonly #parts: CopyParts;
  /** Uploads of this process, by file and account. */
  readonly #uploads = new Map<string, Promise<VendorCopy | undefined>>();
  /** Accounts whose last upload failed, with the end of the pause. */
  readonly #paused = new Map<string, number>();

  constructor(parts: CopyParts) {
    this.#parts = parts;
  }

  async of(
    files: readonly UsableFile[],
    place: CopyPlace,
    needs: (file: UsableFile) => boolean,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, VendorCopy>> {
    const vendorStore = STORES.get(place.target.provider.kind.id);
    const fitting = files.filter(
      ({ bytes, mimeType }) =>
        bytes >= LEAST_BYTES && bytes <= (vendorStore?.maxBytes ?? 0) && vendorStore!.takes(place.format, mimeType),
    );
    if (vendorStore === undefined || fitting.length === 0) return new Map();
    const account = accountOf(place.target);
    const work = Promise.all(
      fitting.map((file) => this.#one(file, { ...place, account, store: vendorStore }, needs(file), signal)),
    );
    const copies = await unlessAborted(work, signal);
    return new Map(copies.flatMap((copy) => (copy === undefined ? [] : [[copy.fileId, copy]])));
  }

  async forget(copies: readonly VendorCopy[]): Promise<void> {
    const ids = copies.map(({ id }) => id);
    await store.deleteCopies(this.#parts.database, ids).catch((error: unknown) => {
      this.#parts.log.warn('copies of files were not forgotten', { error });
    });
  }

  async #one(file: UsableFile, place: Account, needed: boolean, signal: AbortSignal): Promise<VendorCopy | undefined> {
    const { clock } = this.#parts;
    const key = `${file.id} ${place.account.toString('base64')}`;
    for (;;) {
      const known = await this.#known(file, place);
      if (known !== undefined || this.#isPaused(place.account)) return known;
      let upload = this.#uploads.get(key);
      if (upload === undefined) {
        upload = this.#upload(file, place).finally(() => this.#uploads.delete(key));
        this.#uploads.set(key, upload);
      }
      const copy = await upload;
      if (copy !== undefined || !needed || this.#isPaused(place.account)) return copy;
      // Another process uploads it.
      await sleep(clock, POLL_MS);
      if (signal.aborted) return undefined;
    }
  }

  async #known(file: UsableFile, { account, store: { betas } }: Account): Promise<VendorCopy | undefined> {
    const until = new Date(this.#parts.clock.now() + LEFT_MS);
    const [row] = await store.findCopies(this.#parts.database, account, [file.id], until);
    return row && { id: row.id, fileId: file.id, vendorId: row.vendorId, betas };
  }

  /** Undefined if another process does it, or if it fails. */
  async #upload(file: UsableFile, place: Account): Promise<VendorCopy | undefined> {
    const { database, clock, log } = this.#parts;
    const now = clock.now();
    const { provider } = place.target;
    const { lifetimeMs, betas } = place.store;
    const id = uuidv7(now);
    const row = { id, fileId: file.id, providerId: provider.id, byokId: place.byokId, account: place.account };
    const times = { now: new Date(now), end: new Date(now + CLAIM_MS), until: new Date(now + LEFT_MS) };
    if (!(await store.claimCopy(database, row, times))) return undefined;
    try {
      const vendorId = await this.#send(file, place);
      const expiresAt = lifetimeMs === null ? null : new Date(now + lifetimeMs);
      if (await store.completeCopy(database, { id, vendorId, expiresAt })) {
        return { id, fileId: file.id, vendorId, betas };
      }
      await removeAt(place, vendorId, this.#parts);
    } catch (error) {
      this.#pause(place.account);
      log.warn('a file could not be stored at a provider', { provider: provider.id, file: file.id, error });
      await store.deleteCopies(database, [id]).catch(() => {});
    }
    return undefined;
  }

  async #send(file: UsableFile, { target, store: vendorStore }: Account): Promise<string> {
    const { blobs, clock } = this.#parts;
    const content = await blobs.read(file.blobId);
    const request = vendorStore.upload(file, content, target.provider.baseUrl);
    if (request === undefined) throw new GatewayError('provider_unavailable', 'the provider has no place for uploads');
    let made = vendorStore.read(await callVendor(target, vendorStore.vendor, request, this.#parts));
    for (let polls = 0; made?.ready === false && polls < MOST_POLLS; polls++) {
      await sleep(clock, POLL_MS);
      const path = vendorStore.path(made.id);
      made = vendorStore.read(await callVendor(target, vendorStore.vendor, { path, method: 'GET' }, this.#parts));
    }
    if (made?.ready !== true) throw new GatewayError('provider_unavailable', 'the provider did not accept the file');
    return made.id;
  }

  #isPaused(account: Buffer): boolean {
    const end = this.#paused.get(account.toString('base64'));
    return end !== undefined && end > this.#parts.clock.now();
  }

  #pause(account: Buffer): void {
    if (this.#paused.size >= MOST_PAUSED) this.#paused.clear();
    this.#paused.set(account.toString('base64'), this.#parts.clock.now() + PAUSE_MS);
  }
}

interface Account extends CopyPlace {
  readonly account: Buffer;
  readonly store: VendorStore;
}

/** Removes a file at the vendor. Resolves when it is not there. */
export async function removeAt(
  { target, store: vendorStore }: { target: UpstreamTarget; store: VendorStore },
  vendorId: string,
  parts: Pick<CopyParts, 'transport' | 'clock' | 'log'>,
): Promise<void> {
  try {
    const request = { path: vendorStore.path(vendorId), method: 'DELETE' } as const;
    await callVendor(target, vendorStore.vendor, request, parts);
  } catch (error) {
    if (!(error instanceof GatewayError && error.status === 404)) throw error;
  }
}

/** Stops waiting, but not the work, which other requests may wait for. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  work.catch(() => {});
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', abort));
}

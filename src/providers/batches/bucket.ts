/**
 * The bucket of an account from which a batch interface reads its calls, and into which it writes results. The gateway
 * reaches it as it reaches the provider: by the same transport and with the same credential.
 */
import type { UpstreamTarget } from '../byok-target.ts';
import { type BatchAccount, BatchRefusal, type Submission, type UpstreamResult } from './contract.ts';
import { nameOf, removeAll } from './exchange.ts';
import { linesOf } from './lines.ts';

/** Where a bucket is, by its address (`s3://name/folder`). */
export interface BucketPlace {
  name: string;
  /** The prefix of the names of all objects: empty, or ends with a slash. */
  prefix: string;
  /** The address itself, as far as the slash before the name of an object. */
  root: string;
}

/** The operations of one kind of storage. `name` is the name of an object, with its prefix. */
export interface BucketStore {
  /** Replaces the object. */
  write(name: string, content: { bytes: number; chunks: AsyncIterable<Buffer> }, account: BatchAccount): Promise<void>;
  list(prefix: string, account: BatchAccount): Promise<string[]>;
  open(name: string, account: BatchAccount): Promise<AsyncIterable<Buffer>>;
  /** Resolves also if there is no such object. */
  remove(name: string, account: BatchAccount): Promise<boolean>;
}

/** One folder for each batch: its calls, and what the provider writes. */
export class BatchBucket {
  readonly #place: BucketPlace;
  readonly #store: BucketStore;

  constructor(place: BucketPlace, store: BucketStore) {
    this.#place = place;
    this.#store = store;
  }

  /** Addresses of the calls and of the folder of results. */
  addressesOf(marker: string): { input: string; output: string } {
    const { root, prefix } = this.#place;
    const folder = `${root}${prefix}${folderOf(marker)}`;
    return { input: `${folder}${INPUT}`, output: `${folder}${OUTPUT}` };
  }

  /** Uploads the calls, unless an earlier attempt has. Lists the bucket, which the results need, before they are paid for. */
  async uploadOnce(submission: Submission, account: BatchAccount): Promise<void> {
    if (submission.uploadId !== null) return;
    const folder = `${this.#place.prefix}${folderOf(submission.marker)}`;
    const chunks = await submission.content();
    await this.#named(this.#store.write(`${folder}${INPUT}`, { bytes: submission.bytes, chunks }, account));
    await submission.uploaded(`${folder}${INPUT}`);
    await this.#named(this.#store.list(folder, account));
  }

  /** The objects in the folder of results. @param address as the provider repeats it */
  async outputsAt(address: string, account: BatchAccount): Promise<string[]> {
    const { root, prefix } = this.#place;
    const name = address.startsWith(root) ? address.slice(root.length) : '';
    const folder = name.endsWith('/') ? name : `${name}/`;
    if (!folder.startsWith(prefix) || !FOLDER.test(folder.slice(prefix.length)))
      throw new BatchRefusal('the provider names another place for its results', 400);
    return this.#named(this.#store.list(folder, account));
  }

  /** The results in the lines of objects. @param resultOf undefined for a line that is not a result */
  async *results(
    names: readonly string[],
    resultOf: (line: Buffer) => UpstreamResult | undefined,
    account: BatchAccount,
  ): AsyncGenerator<UpstreamResult> {
    for (const name of names) {
      for await (const line of linesOf(await this.#named(this.#store.open(name, account)))) {
        const result = resultOf(line);
        if (result !== undefined) yield result;
      }
    }
  }

  remove(names: readonly string[], account: BatchAccount): Promise<boolean> {
    return removeAll(names.map((name) => () => this.#named(this.#store.remove(name, account))));
  }

  /** Failures name the bucket. */
  async #named<T>(pending: Promise<T>): Promise<T> {
    try {
      return await pending;
    } catch (error) {
      if (!(error instanceof BatchRefusal)) throw error;
      const message = `the bucket ${this.#place.root}: ${error.message}`;
      throw new BatchRefusal(message, error.status, error.retryAfterMs);
    }
  }
}

const INPUT = 'input.jsonl';
const OUTPUT = 'output/';
const FOLDER = /^gatehouse-[0-9a-f-]{36}\/output\/$/;

function folderOf(marker: string): string {
  return `${nameOf(marker)}/`;
}

/** @param address of the form `scheme://name/folder`, as the options check it */
export function placeOf(address: string): BucketPlace {
  const [, root = '', name = '', folder = ''] = /^([a-z0-9]+:\/\/([^/]+))\/?(.*?)\/*$/.exec(address) ?? [];
  return { name, prefix: folder === '' ? '' : `${folder}/`, root: `${root}/` };
}

/** The bucket is in the account of the configured credential; a customer's credential cannot use it. */
export function isOfOperator({ provider, credential }: UpstreamTarget): boolean {
  return credential === null ? provider.credentials.length === 0 : provider.credentials.includes(credential);
}

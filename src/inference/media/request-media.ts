/**
 * The media of one request, prepared for each endpoint that is tried: URLs that it cannot fetch become bytes, and stored
 * files become bytes or the ids of their copies at the vendor.
 */
import type { Endpoint } from '../../catalog/index.ts';
import type { VendorCopy } from '../../files/index.ts';
import type { Conversation, FormatId } from '../../formats/conversation/conversation.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { MediumKind } from '../../formats/conversation/format.ts';
import { spokenFormat } from '../../formats/index.ts';
import { policyOf } from '../../guardrails/index.ts';
import { formatsFor } from '../../providers/index.ts';
import type { ReferencedFiles } from '../admission/referenced-files.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import type { Preparing } from '../task.ts';
import { MediaFetcher, sourceOf } from './fetch-media.ts';
import { FileMedia } from './file-media.ts';
import { type Fetched, pathOf, type RemoteMedium, remoteMedia } from './remote.ts';

interface Prepared {
  readonly media: Fetched;
  /** At the vendor, for files that the request names there. */
  readonly copies?: readonly VendorCopy[];
}

const MEDIA: readonly MediumKind[] = ['image', 'file', 'audio', 'video'];
const NO_COPIES: ReadonlyMap<string, VendorCopy> = new Map();
/** A vendor that lost a copy gets another one; after that, files are sent with the request. */
const MOST_LOST = 2;

export class RequestMedia {
  readonly #context: RequestContext<ConversationRequest>;
  readonly #conversation: () => Conversation;
  readonly #parts: InferenceParts;
  #fetcher: MediaFetcher | undefined;
  #files: FileMedia | undefined;
  #prepared: Prepared | undefined;
  /** How often a vendor did not have a copy that the request named. */
  #lost = 0;

  constructor(context: RequestContext<ConversationRequest>, conversation: () => Conversation, parts: InferenceParts) {
    this.#context = context;
    this.#conversation = conversation;
    this.#parts = parts;
  }

  /** For the endpoint that is tried next; undefined if its media are sent as they are. */
  get prepared(): Prepared | undefined {
    return this.#prepared;
  }

  /** As `Task.prepare`. */
  prepare(endpoint: Endpoint, about: Preparing): Promise<void> | undefined {
    const { images, documents } = this.#context.request.facts.media;
    this.#prepared = undefined;
    if (images + documents === 0) return undefined;
    const remote = this.#remote(endpoint);
    const { files } = this.#context;
    if (files !== undefined && files.size > 0) return this.#prepareFiles(endpoint, files, remote, about);
    return remote && this.#prepareRemote(remote, about);
  }

  /** As `Task.recover`. @param copies that the failed attempt named */
  recover(copies: readonly VendorCopy[] | undefined, failure: UpstreamFailure): Promise<void> | undefined {
    if (copies === undefined || copies.length === 0 || this.#lost >= MOST_LOST || !isLost(copies, failure))
      return undefined;
    this.#lost += 1;
    return this.#parts.vendorCopies!.forget(copies);
  }

  /** The path of a stored file that is the only medium of its kind. */
  pathOf(feature: string): string | undefined {
    const { images, documents } = this.#context.request.facts.media;
    const [only, another] = [...(this.#context.files?.values() ?? [])].filter(({ kind }) => kind === feature);
    return another === undefined && (feature === 'image' ? images : documents) === 1 ? only?.path : undefined;
  }

  /** The media that the endpoint cannot fetch itself; undefined if there are none. */
  #remote(endpoint: Endpoint): ReadonlyMap<string, RemoteMedium> | undefined {
    const { dialect } = endpoint.provider.kind;
    const first = this.#formatOf(endpoint);
    const spoken = first === undefined ? undefined : spokenFormat(first);
    if (spoken?.wantsBytes === undefined || !MEDIA.some((medium) => spoken.wantsBytes!(medium, '', dialect))) {
      return undefined;
    }
    // A cheap check that spares decoding a request whose media are all inline.
    if (!this.#context.request.document.bytes.includes('"http')) return undefined;
    const wants = (medium: MediumKind, url: string) => spoken.wantsBytes!(medium, url, dialect);
    const remote = remoteMedia(this.#conversation(), wants);
    return remote.size === 0 ? undefined : remote;
  }

  #formatOf({ provider: { kind }, upstreamId, speaks }: Endpoint): FormatId | undefined {
    return formatsFor(kind, upstreamId, this.#context.request.format.id, speaks)[0];
  }

  async #prepareRemote(remote: ReadonlyMap<string, RemoteMedium>, { signal }: Preparing): Promise<void> {
    this.#prepared = { media: await this.#fetched(remote, signal()) };
  }

  async #prepareFiles(
    endpoint: Endpoint,
    references: ReferencedFiles,
    remote: ReadonlyMap<string, RemoteMedium> | undefined,
    about: Preparing,
  ): Promise<void> {
    this.#files ??= new FileMedia(this.#parts.files!, this.#parts.limits);
    const format = this.#formatOf(endpoint)!;
    const signal = about.signal();
    const copies = await this.#copies(endpoint, references, format, about);
    const [substitutes, fetched] = await Promise.all([
      this.#files.all(references, copies, format, signal),
      remote && this.#fetched(remote, signal),
    ]);
    this.#prepared = { media: new Map([...(fetched ?? []), ...substitutes]), copies: [...copies.values()] };
  }

  /** By the UUIDs of the files; none where nothing may be kept. */
  async #copies(
    endpoint: Endpoint,
    references: ReferencedFiles,
    format: FormatId,
    about: Preparing,
  ): Promise<ReadonlyMap<string, VendorCopy>> {
    const { vendorCopies } = this.#parts;
    if (vendorCopies === undefined || this.#lost >= MOST_LOST || !this.#mayBeKept(endpoint)) return NO_COPIES;
    const files = [...new Map([...references.values()].map(({ file }) => [file.id, file])).values()];
    const place = { ...about.target(), format };
    return vendorCopies.of(files, place, (file) => this.#files!.isLarge(file), about.signal());
  }

  #mayBeKept({ modelId }: Endpoint): boolean {
    const { caller, facts } = this.#context.request;
    const { zdr, data_collection: collection } = facts.provider;
    if (zdr === true || collection === 'deny' || this.#parts.accountPolicy().zdr) return false;
    return !policyOf(caller).wantsZdr(modelId);
  }

  async #fetched(remote: ReadonlyMap<string, RemoteMedium>, signal: AbortSignal): Promise<Fetched> {
    const { egress, limits } = this.#parts;
    const { document } = this.#context.request;
    this.#fetcher ??= new MediaFetcher(egress, limits, (url) => pathOf(document.exact, url) ?? '');
    const media = await this.#fetcher.all(remote, signal);
    return new Map([...media].map(([url, medium]) => [url, { source: sourceOf(medium) }]));
  }
}

const REFUSALS: ReadonlySet<number | null> = new Set([400, 403, 404]);
const NO_FILE = /\bfiles?\b[^.]*\b(?:not found|not exist|no longer|expired|deleted)\b|\bno such file\b/i;

/** Whether a vendor reports that it does not have a file. Gemini answers 403, with the name in its text. */
function isLost(copies: readonly VendorCopy[], { status, message }: UpstreamFailure): boolean {
  if (!REFUSALS.has(status)) return false;
  const names = copies.map(({ vendorId }) => vendorId.slice(vendorId.lastIndexOf('/') + 1));
  return NO_FILE.test(message) || names.some((name) => message.includes(name));
}

/**
 * Reads the stored files of one request for endpoints that get them as bytes. Each file is read once, however many
 * endpoints are tried. The limits are those of media fetched from URLs.
 */
import type { Limits } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { FileContents, UsableFile, VendorCopy } from '../../files/index.ts';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import type { ReferencedFile, ReferencedFiles } from '../admission/referenced-files.ts';
import type { Substitute } from './remote.ts';

export class FileMedia {
  readonly #files: FileContents;
  readonly #limits: Limits;
  readonly #read = new Map<string, Promise<string>>();
  #leftBytes: number;

  constructor(files: FileContents, limits: Limits) {
    this.#files = files;
    this.#limits = limits;
    this.#leftBytes = limits.fetchedMediaBytes;
  }

  /**
   * By the ids in the request. @param copies at the vendor, by the UUIDs of the files, which are named instead
   * @throws GatewayError 413 with the path of the reference
   */
  async all(
    references: ReferencedFiles,
    copies: ReadonlyMap<string, VendorCopy>,
    format: FormatId,
    signal: AbortSignal,
  ): Promise<[string, Substitute][]> {
    const reading = [...references].map(async ([id, each]): Promise<[string, Substitute]> => {
      const copy = copies.get(each.file.id);
      return [id, copy === undefined ? await this.#one(id, each, signal) : named(copy, each, format)];
    });
    return Promise.all(reading);
  }

  /** Whether the file may be too large to be sent within a request. */
  isLarge({ bytes }: UsableFile): boolean {
    return bytes > this.#limits.fetchedMediumBytes || bytes > this.#leftBytes;
  }

  async #one(id: string, { file, kind, path }: ReferencedFile, signal: AbortSignal): Promise<Substitute> {
    let reading = this.#read.get(id);
    if (reading === undefined) {
      if (file.bytes > this.#limits.fetchedMediumBytes) {
        throw tooLarge(path, `is larger than ${this.#limits.fetchedMediumBytes} bytes`);
      }
      if (file.bytes > this.#leftBytes) {
        throw tooLarge(
          path,
          `brings the files of this request over the limit of ${this.#limits.fetchedMediaBytes} bytes`,
        );
      }
      this.#leftBytes -= file.bytes;
      reading = this.#files.read(file, signal).then((content) => content.toString('base64'));
      this.#read.set(id, reading);
      reading.catch(() => {
        this.#read.delete(id);
        this.#leftBytes += file.bytes;
      });
    }
    const source = { kind: 'bytes', mediaType: file.mimeType, data: await reading } as const;
    return { source, kind, filename: file.filename };
  }
}

function named({ vendorId }: VendorCopy, { kind, file }: ReferencedFile, origin: FormatId): Substitute {
  const source = { kind: 'file', id: vendorId, origin, mediaType: file.mimeType } as const;
  // Other formats have the name from the vendor's store.
  return { source, kind, ...(origin === 'messages' && { filename: file.filename }) };
}

function tooLarge(path: string, problem: string): GatewayError {
  return new GatewayError('payload_too_large', `${path} ${problem}`, { path });
}

/** Files of a workspace as tools of a model use them. What a tool has written can be downloaded, and only that can be replaced. */
import type { Author } from '../audit/index.ts';
import { GatewayError } from '../base/errors.ts';
import { checkFilename } from './filename.ts';
import { wireId } from './shape.ts';
import * as store from './store.ts';
import { type StoreParts, storeContent, TOOL_TERMS } from './upload.ts';

/** A file as a model sees it. */
export interface WorkspaceFile extends Pick<store.StoredFile, 'filename' | 'mimeType' | 'bytes'> {
  /** As on the wire. */
  id: string;
  /** UUID. */
  storedId: string;
  /** A tool has written it. */
  isMade: boolean;
  blobId: string;
}

export class WorkspaceFiles {
  readonly #parts: StoreParts;

  constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  /** The newest files, oldest first. */
  async list(workspaceId: string, limit: number): Promise<WorkspaceFile[]> {
    return (await store.newestFiles(this.#parts.database, workspaceId, this.#now(), limit)).map(shown);
  }

  /** The newest file with this name. */
  async named(workspaceId: string, filename: string): Promise<WorkspaceFile | undefined> {
    const file = await store.findNamed(this.#parts.database, workspaceId, filename, this.#now());
    return file && shown(file);
  }

  /**
   * Adds a text, in place of a file that a tool made.
   * @throws GatewayError 400 for a name that files cannot have, 403 without space, 409 if the replaced file is gone
   */
  async write(
    author: Author,
    { workspaceId, filename, text }: { workspaceId: string; filename: string; text: string },
    replaced?: WorkspaceFile,
  ): Promise<WorkspaceFile> {
    checkFilename(filename);
    if (text === '') throw new GatewayError('invalid_request', 'a file must not be empty');
    const content = (async function* () {
      yield Buffer.from(text);
    })();
    const made = { workspaceId, filename, content, downloadable: true, terms: TOOL_TERMS };
    return shown(await storeContent(author, this.#parts, { ...made, replaces: replaced?.storedId }));
  }

  #now(): Date {
    return new Date(this.#parts.clock.now());
  }
}

function shown({ id, filename, mimeType, bytes, downloadable, blobId }: store.StoredFile): WorkspaceFile {
  return { id: wireId(id), storedId: id, filename, mimeType, bytes, isMade: downloadable, blobId };
}

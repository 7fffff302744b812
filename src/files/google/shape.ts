/** Files as Google's clients see them. */
import { uuidOf } from '../../base/ids.ts';
import { storedId } from '../shape.ts';
import type { StoredFile } from '../store.ts';

/** @param root the gateway's URL as the client sees it */
export function googleFile(file: StoredFile, root: string): Record<string, unknown> {
  const name = nameOf(file.id);
  const uri = `${root}/v1beta/${name}`;
  const createTime = file.createdAt.toISOString();
  return {
    name,
    displayName: file.displayName ?? file.filename,
    mimeType: file.mimeType,
    sizeBytes: String(file.bytes),
    createTime,
    updateTime: createTime,
    ...(file.expiresAt && { expirationTime: file.expiresAt.toISOString() }),
    uri,
    ...(file.downloadable && { downloadUri: `${uri}:download?alt=media` }),
    state: 'ACTIVE',
    source: file.downloadable ? 'GENERATED' : 'UPLOADED',
  };
}

/** Digits and letters only, since these clients cut names at other characters. */
export function nameOf(id: string): string {
  return `files/${id.replaceAll('-', '')}`;
}

/** The id of the file with this name, with or without `files/`; undefined if no file can have it. */
export function idOf(name: string): string | undefined {
  return uuidOf('', name) ?? uuidOf('files/', name) ?? storedId(name);
}

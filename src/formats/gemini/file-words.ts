/**
 * Files of this gateway in contents: `fileData` with the `uri` or the name that the Files API returned, under whatever host
 * the client reaches the gateway. Files at Google have names of another form, or Google's host.
 */
import { type Fields, fieldsOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import { type FileWords, OWN_FILE_PREFIX } from '../conversation/file-words.ts';
import { member } from './names.ts';

const GOOGLE = /^https?:\/\/[^/]*\.googleapis\.com(?::\d+)?\//i;
const STORED = /^(?:https?:\/\/[^/?#]+(?:\/[^?#]*)?\/v1(?:beta)?\/)?files\/(?:svc_file_)?([0-9a-f]{32})$/i;
/** Documents are neither of these. */
const OTHER_MEDIA = /^(?:image|audio|video)\//i;

/** The id of the file of this gateway that a URI names; undefined for any other URI. */
export function storedFileId(uri: string): string | undefined {
  const digits = GOOGLE.test(uri) ? undefined : STORED.exec(uri)?.[1];
  return digits === undefined ? undefined : OWN_FILE_PREFIX + digits.toLowerCase();
}

export const fileWords: FileWords = {
  root: 'contents',
  within: ['parts', 'functionResponse', 'function_response'],
  single: 'parts',
  read(part, path) {
    const id = storedFileId(textOf(member(fieldsOf(member(part, 'fileData')), 'fileUri')));
    if (id === undefined) return undefined;
    const holds = /\.function_?response\./i.test(path) ? 'medium' : 'document';
    return { id, member: 'fileData.fileUri', holds };
  },
  document(part) {
    const inline = fieldsOf(member(part, 'inlineData'));
    const linked = fieldsOf(member(part, 'fileData'));
    const medium = typeof inline['data'] === 'string' ? inline : linked;
    const type = textOf(member(medium, 'mimeType'));
    const filename = nonEmptyText(member(medium, 'displayName'));
    if (type === '' || OTHER_MEDIA.test(type)) return undefined;
    if (medium === inline) return { data: `data:${type};base64,${inline['data'] as string}`, filename };
    const url = textOf(member(linked, 'fileUri'));
    return /^https?:/i.test(url) && storedFileId(url) === undefined ? { url, filename } : undefined;
  },
  text: ({ fileData, file_data, inlineData, inline_data, ...rest }: Fields, { text }) => ({ ...rest, text }),
};

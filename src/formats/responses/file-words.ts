/** File ids in content parts: `file_id` of `input_file` and `input_image`. */
import { nonEmptyText } from '../conversation/fields.ts';
import type { FileWords } from '../conversation/file-words.ts';

const HOLDS = new Map<unknown, 'document' | 'image'>([
  ['input_file', 'document'],
  ['input_image', 'image'],
]);

export const fileWords: FileWords = {
  root: 'input',
  read(part) {
    const holds = HOLDS.get(part['type']);
    const id = nonEmptyText(part['file_id']);
    if (holds === undefined || id === undefined) return undefined;
    // Content in the part wins over the id, as in decoding.
    if (['file_data', 'file_url', 'image_url'].some((member) => typeof part[member] === 'string')) return undefined;
    return { id, member: 'file_id', holds };
  },
  document({ type, file_data: data, file_url: url, filename }) {
    if (type !== 'input_file') return undefined;
    const name = nonEmptyText(filename);
    if (typeof data === 'string') return { data, filename: name };
    return typeof url === 'string' ? { url, filename: name } : undefined;
  },
  text: ({ file_id: _id, file_data: _data, file_url: _url, filename: _filename, ...rest }, { text }) => ({
    ...rest,
    type: 'input_text',
    text,
  }),
};

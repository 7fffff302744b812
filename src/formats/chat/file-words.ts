/** File ids in chat messages: `{"type": "file", "file": {"file_id": "..."}}`. */
import { fieldsOf, nonEmptyText } from '../conversation/fields.ts';
import type { FileWords } from '../conversation/file-words.ts';

export const fileWords: FileWords = {
  root: 'messages',
  read(part) {
    if (part['type'] !== 'file') return undefined;
    const id = nonEmptyText(fieldsOf(part['file'])['file_id']);
    return id === undefined ? undefined : { id, member: 'file.file_id', holds: 'document' };
  },
  document(part) {
    const { file_data: data, filename } = fieldsOf(part['file']);
    if (part['type'] !== 'file' || typeof data !== 'string') return undefined;
    const name = nonEmptyText(filename);
    return /^https?:/i.test(data) ? { url: data, filename: name } : { data, filename: name };
  },
  text: ({ file: _file, ...rest }, { text }) => ({ ...rest, type: 'text', text }),
};

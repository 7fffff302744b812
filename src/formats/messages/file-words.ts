/** File ids in content blocks: `source` of images and documents, and uploads into a container. */
import { fieldsOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import type { FileWords } from '../conversation/file-words.ts';

export const fileWords: FileWords = {
  root: 'messages',
  read(block) {
    const { type } = block;
    if (type === 'container_upload') {
      const id = nonEmptyText(block['file_id']);
      return id === undefined ? undefined : { id, member: 'file_id', holds: 'upload' };
    }
    const source = fieldsOf(block['source']);
    if ((type !== 'image' && type !== 'document') || source['type'] !== 'file') return undefined;
    const id = nonEmptyText(source['file_id']);
    return id === undefined ? undefined : { id, member: 'source.file_id', holds: type };
  },
  document({ type, source: value, title }) {
    const source = fieldsOf(value);
    const filename = nonEmptyText(title);
    if (type !== 'document') return undefined;
    if (source['type'] === 'base64') return { data: textOf(source['data']), filename };
    return source['type'] === 'url' ? { url: textOf(source['url']), filename } : undefined;
  },
  text: (block, { text, filename }) => ({
    ...block,
    title: block['title'] ?? filename,
    source: { type: 'text', media_type: 'text/plain', data: text },
  }),
};

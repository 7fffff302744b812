/**
 * Annotations of parsed files: the answer brings the text of each file with the hash of its bytes, and a client that
 * sends the annotation back in its history saves the next parse. Only the chat format has them.
 */
import { type Fields, fieldsOf, listOf, textOf } from '../../../formats/conversation/fields.ts';
import type { ParsedFile } from '../../context.ts';

export function annotationOf({ hash, filename, texts }: ParsedFile): Fields {
  const content = texts.map((text) => ({ type: 'text', text }));
  return { type: 'file', file: { hash, ...(filename !== undefined && { name: filename }), content } };
}

/** The texts of files in the history, by the hashes of their bytes. */
export function annotatedTexts(messages: readonly unknown[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const annotation of messages.flatMap(annotationsOf)) {
    const file = fieldsOf(fieldsOf(annotation)['file']);
    const texts = listOf(file['content']).flatMap((part) => textOf(fieldsOf(part)['text']) || []);
    const hash = textOf(file['hash']);
    if (hash !== '' && texts.length > 0) found.set(hash, texts);
  }
  return found;
}

/** The message without annotations of files, which no upstream knows. */
export function withoutFiles(message: unknown): unknown {
  const annotations = annotationsOf(message);
  const others = annotations.filter((each) => fieldsOf(each)['type'] !== 'file');
  if (others.length === annotations.length) return message;
  const { annotations: _, ...rest } = fieldsOf(message);
  return others.length === 0 ? rest : { ...rest, annotations: others };
}

function annotationsOf(message: unknown): unknown[] {
  return listOf(fieldsOf(message)['annotations']);
}

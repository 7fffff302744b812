/** How a format references stored files in the content of a request, by their ids. Pure. */
import { type Fields, isFields } from './fields.ts';

/** A part of a request that holds the id of a file instead of its content. */
interface FileReference {
  id: string;
  /** The member with the id, below the part, such as `file.file_id`. */
  member: string;
  /** What the part may hold: `image` only images, `document` anything, `upload` files for a vendor's own tools. */
  holds: 'image' | 'document' | 'upload';
}

/** A document within a request: its bytes, or a URL. */
interface InlineDocument {
  /** Base64, or a `data:` URL. */
  data?: string | undefined;
  url?: string | undefined;
  filename?: string | undefined;
}

export interface FileWords {
  /** The top-level member that holds the content. */
  readonly root: string;
  /** Undefined for a part that references no file. */
  read(part: Fields): FileReference | undefined;
  /** Undefined for a part that holds no document itself. */
  document(part: Fields): InlineDocument | undefined;
  /** The part with the text of a file in place of the reference or the document. */
  text(part: Fields, file: { text: string; filename: string }): Fields;
}

export interface FoundReference extends FileReference {
  /** The path of the id in the body. */
  path: string;
  part: Fields;
}

/** Members that hold the content of messages, tool results and documents. Arguments of tool calls are not among them. */
const CONTENT = ['content', 'output', 'source'];

/** Every reference in a body, in order. */
export function fileReferences(body: Readonly<Fields>, words: FileWords): FoundReference[] {
  const found: FoundReference[] = [];
  eachPart(body[words.root], words.root, (part, path) => {
    const reference = words.read(part);
    if (reference !== undefined) found.push({ ...reference, path: `${path}.${reference.member}`, part });
    return part;
  });
  return found;
}

/** Changes the references below a body's root in place. @param change undefined removes the part */
export function replaceReferences(
  root: unknown,
  words: FileWords,
  change: (part: Fields, reference: FileReference) => Fields | undefined,
): void {
  eachPart(root, words.root, (part) => {
    const reference = words.read(part);
    return reference === undefined ? part : change(part, reference);
  });
}

type Visit = (part: Fields, path: string) => Fields | undefined;

/**
 * Calls `visit` with every part of the content below `path`, and puts what it returns in the place of the part; undefined
 * removes it. The nesting depth is limited when requests are parsed.
 */
export function eachPart(value: unknown, path: string, visit: Visit): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index] as unknown;
      if (!isFields(item)) continue;
      const at = `${path}[${index}]`;
      const changed = visit(item, at);
      if (changed === undefined) value.splice(index--, 1);
      else if (changed !== item) value[index] = changed;
      else for (const member of CONTENT) eachPart(item[member], `${at}.${member}`, visit);
    }
  } else if (isFields(value)) {
    // The source of a document, which may hold content.
    for (const member of CONTENT) eachPart(value[member], `${path}.${member}`, visit);
  }
}

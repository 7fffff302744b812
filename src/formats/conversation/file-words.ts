/** How a format references stored files in the content of a request, by their ids. Pure. */
import { type Fields, isFields } from './fields.ts';

/** A part of a request that holds the id of a file instead of its content. */
interface FileReference {
  id: string;
  /** The member with the id, below the part, such as `file.file_id`. */
  member: string;
  /**
   * The files that the part may hold: `image` only images, `medium` everything but texts, `document` anything, `upload`
   * files for a vendor's own tools.
   */
  holds: 'image' | 'medium' | 'document' | 'upload';
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
  /** Members below it that hold content. Default: those of messages, tool results and documents (`CONTENT`). */
  readonly within?: readonly string[];
  /** The member of these that may hold one part in place of a list of parts. */
  readonly single?: string;
  /** Undefined for a part that references no file. @param path of the part in the body */
  read(part: Fields, path: string): FileReference | undefined;
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

/** The prefix of ids of this gateway's files. */
export const OWN_FILE_PREFIX = 'svc_file_';

/** Members that hold the content of messages, tool results and documents. Arguments of tool calls are not among them. */
const CONTENT = ['content', 'output', 'source'];

/** Every reference in a body, in order. */
export function fileReferences(body: Readonly<Fields>, words: FileWords): FoundReference[] {
  const found: FoundReference[] = [];
  eachPart(body[words.root], words, (part, path) => {
    const reference = words.read(part, path);
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
  eachPart(root, words, (part, path) => {
    const reference = words.read(part, path);
    return reference === undefined ? part : change(part, reference);
  });
}

type Visit = (part: Fields, path: string) => Fields | undefined;

/**
 * Calls `visit` with every part of the content below a body's root, and puts what it returns in the place of the part;
 * undefined removes it. The nesting depth is limited when requests are parsed.
 */
export function eachPart(root: unknown, words: FileWords, visit: Visit): void {
  walk(root, words.root, { words, visit });
}

interface Walk {
  words: FileWords;
  visit: Visit;
}

function walk(value: unknown, path: string, about: Walk): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index] as unknown;
      if (!isFields(item)) continue;
      const at = `${path}[${index}]`;
      const changed = about.visit(item, at);
      if (changed === undefined) value.splice(index--, 1);
      else if (changed !== item) value[index] = changed;
      else inside(item, at, about);
    }
  } else if (isFields(value)) {
    // The source of a document, which may hold content.
    inside(value, path, about);
  }
}

function inside(value: Fields, path: string, about: Walk): void {
  const { within = CONTENT, single } = about.words;
  for (const member of within) {
    const content = value[member];
    if (member !== single || !isFields(content)) walk(content, `${path}.${member}`, about);
    else {
      const list = [content];
      walk(list, `${path}.${member}`, about);
      value[member] = list[0] ?? [];
    }
  }
}

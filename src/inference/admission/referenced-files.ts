/**
 * Files that a request references by their ids (`/files`). Text files become text of the request, so every later stage
 * treats them as such. Media stay references: each endpoint gets them as it takes them (`media/file-media.ts`).
 */
import { GatewayError, invalidField } from '../../base/errors.ts';
import { type JsonDocument, parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import type { UsableFile } from '../../files/index.ts';
import {
  type FileWords,
  type FoundReference,
  fileReferences,
  replaceReferences,
} from '../../formats/conversation/file-words.ts';
import type { MediumKind, RequestFacts } from '../../formats/conversation/format.ts';
import type { Admission } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import { type AcceptedRequest, type ConversationRequest, isConversation } from '../request.ts';

/** A file that stays a reference in the request. */
export interface ReferencedFile {
  readonly file: UsableFile;
  readonly kind: Extract<MediumKind, 'image' | 'audio' | 'file'>;
  /** Of the first reference to it. */
  readonly path: string;
}

/** By the ids in the request. */
export type ReferencedFiles = ReadonlyMap<string, ReferencedFile>;

/** Of all text files of a request: more than any model reads. */
const MAX_TEXT_BYTES = 8 * 1024 * 1024;
const TEXT_TYPE = /^(?:text\/|application\/(?:json|x-ndjson)$)/;

type Parts = Pick<InferenceParts, 'files' | 'limits'>;

/**
 * Looks up the referenced files. Undefined, the usual case, if there are none.
 * @throws GatewayError 400, 403, 404 or 413 with the path of the reference
 */
export function resolveFiles(context: Admission, { files, limits }: Parts): undefined | Promise<void> {
  const { request } = context;
  if (files === undefined || !isConversation(request)) return undefined;
  const { format, facts, document } = request;
  if (format.fileWords === undefined || facts.media.images + facts.media.documents === 0) return undefined;
  const own = fileReferences(document.structure, format.fileWords).filter(({ id }) => files.isOwn(id));
  return own.length === 0 ? undefined : resolve(context as Admission<ConversationRequest>, own, { files, limits });
}

async function resolve(
  context: Admission<ConversationRequest>,
  references: readonly FoundReference[],
  { files, limits }: Pick<InferenceParts, 'limits'> & { files: NonNullable<Parts['files']> },
): Promise<void> {
  const { request } = context;
  const ids = [...new Set(references.map(({ id }) => id))];
  checkReferences(request, references, ids.length, limits.fetchedMedia);
  const found = await files.find(request.caller.workspaceId, ids);
  const media = new Map<string, ReferencedFile>();
  const texts = new Map<string, UsableFile>();
  let textBytes = 0;
  for (const reference of references) {
    const { id, path } = reference;
    const file = found.get(id);
    if (file === undefined) {
      throw new GatewayError('not_found', `${path}: the workspace has no file with the id ${id}`, { path });
    }
    const kind = kindOf(file, reference);
    if (kind !== 'text') {
      if (!media.has(id)) media.set(id, { file, kind, path });
      continue;
    }
    texts.set(id, file);
    textBytes += file.bytes;
    if (textBytes > MAX_TEXT_BYTES) {
      const problem = `brings the text files of this request over the limit of ${MAX_TEXT_BYTES} bytes`;
      throw new GatewayError('payload_too_large', `${path} ${problem}`, { path });
    }
  }
  context.files = media;
  const document = texts.size === 0 ? request.document : await withTexts(request, texts, files);
  context.request = { ...request, document, facts: factsWithFiles({ ...request, document }, media) };
}

function checkReferences(
  { about }: AcceptedRequest,
  references: readonly FoundReference[],
  count: number,
  limit: number,
): void {
  const { path } = references[0]!;
  if (about.region !== 'global') {
    throw new GatewayError('permission_denied', `${path}: files can be used at the global host only`, { path });
  }
  if (count > limit) throw invalidField(path, `and others reference more than ${limit} files`);
  const upload = references.find(({ holds }) => holds === 'upload');
  if (upload !== undefined) {
    throw invalidField(
      upload.path,
      'must be a file at the provider: files of this gateway cannot go into its containers',
    );
  }
}

function kindOf({ mimeType }: UsableFile, { holds, path }: FoundReference): ReferencedFile['kind'] | 'text' {
  const kind = mimeType.startsWith('image/')
    ? 'image'
    : mimeType.startsWith('audio/')
      ? 'audio'
      : TEXT_TYPE.test(mimeType)
        ? 'text'
        : 'file';
  if (holds === 'image' && kind !== 'image') throw invalidField(path, `must be an image, not ${mimeType}`);
  if (holds === 'medium' && kind === 'text')
    throw invalidField(path, 'must not be a text: put texts into the response');
  return kind;
}

/** The document with the texts in place of the references to them. */
async function withTexts(
  { document, format }: ConversationRequest,
  texts: ReadonlyMap<string, UsableFile>,
  files: NonNullable<Parts['files']>,
): Promise<JsonDocument> {
  const words = format.fileWords!;
  const contents = new Map<string, string>();
  for (const [id, file] of texts) contents.set(id, textOf(await files.read(file)));
  const { valueStart, valueEnd } = document.members.find(({ key }) => key === words.root)!;
  const root = parseJson(document.bytes.toString('utf8', valueStart, valueEnd));
  replaceReferences(root, words, (part, { id }) => {
    const text = contents.get(id);
    return text === undefined ? part : words.text(part, { text, filename: texts.get(id)!.filename });
  });
  return readDocument(applyEdits(document, [{ key: words.root, json: stringifyJson(root) }]));
}

function textOf(content: Buffer): string {
  const text = content.toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** The facts of a request in which references count as the media of their files. */
export function factsWithFiles(
  { format, document }: Pick<ConversationRequest, 'format' | 'document'>,
  files: ReferencedFiles,
): RequestFacts {
  if (files.size === 0) return format.facts(document.value);
  const words: FileWords = format.fileWords!;
  const root = structuredClone(document.value[words.root]);
  let [images, documents] = [0, 0];
  const kinds = new Set<string>();
  replaceReferences(root, words, (part, { id }) => {
    const referenced = files.get(id);
    if (referenced === undefined) return part;
    if (referenced.kind === 'image') images += 1;
    else documents += 1;
    kinds.add(referenced.kind);
    return undefined;
  });
  const facts = format.facts({ ...document.value, [words.root]: root });
  const media = { images: facts.media.images + images, documents: facts.media.documents + documents };
  const { inputs = [], ...needs } = facts.needs ?? { outputs: [], features: [], parameters: [] };
  return { ...facts, media, needs: { ...needs, inputs: [...new Set([...inputs, ...kinds])] } };
}

/**
 * The file parser: PDFs become text, for models that do not read files. Guardrail filters see the text. The answer in
 * the chat format brings the text as an annotation, which saves the next parse if the client sends it back.
 */
import Type from 'typebox';
import { parseJson, readDocument, stringifyJson } from '../../../base/json.ts';
import { applyEdits } from '../../../base/json-edits.ts';
import type { Citation } from '../../../formats/conversation/conversation.ts';
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import { eachPart, type FileWords } from '../../../formats/conversation/file-words.ts';
import { nullable, optional, word } from '../../../formats/conversation/loose-schema.ts';
import { changeDocument } from '../../admission/changed-document.ts';
import type { ConversationRequest } from '../../request.ts';
import { Citing } from '../citing.ts';
import type { AdmissionParts, AdmissionStep, Plugin } from '../plugin.ts';
import { annotatedTexts, annotationOf, withoutFiles } from './annotations.ts';
import { documentKey, type ParsedPart, parseDocuments, type RecognizePages } from './documents.ts';
import { recognition } from './recognition.ts';

/** `pdf-text` is the older name of `cloudflare-ai`: text without recognition. */
const ENGINES = ['native', 'cloudflare-ai', 'pdf-text', 'mistral-ocr'];

export const fileParser: Plugin = {
  id: 'file-parser',
  parameters: { pdf: Type.Optional(nullable(Type.Object({ engine: optional(word(ENGINES)) }))) },
  beforeFilters(step) {
    const { context, settings, parts } = step;
    const { request } = context;
    const { fileWords } = request.format;
    if (fileWords === undefined || parts.pdf === undefined || request.facts.media.documents === 0) return undefined;
    const engine = fieldsOf(settings['pdf'])['engine'] ?? (readsFiles(request, parts) ? 'native' : 'cloudflare-ai');
    if (engine === 'native') return undefined;
    return parse(step, fileWords, engine === 'mistral-ocr' ? recognition(step) : undefined);
  },
  revise({ context }) {
    const { parsed, request } = context;
    if (parsed === undefined || request.format.id !== 'chat') return undefined;
    const annotations = parsed.map((file): Citation => ({ native: { origin: 'chat', value: annotationOf(file) } }));
    return new Citing((_text, isFirst) => (isFirst ? annotations : []));
  },
};

/** Whether the catalog says that the requested model reads files itself. */
function readsFiles({ facts, caller }: ConversationRequest, { catalog }: AdmissionParts): boolean {
  const name = facts.model ?? facts.fallbackModels[0] ?? caller.workspace.defaultTextModel;
  const model = name ? catalog().find(name) : undefined;
  return model?.endpoints.some(({ inputModalities }) => inputModalities?.includes('file')) ?? false;
}

async function parse(
  { context, parts }: AdmissionStep,
  words: FileWords,
  recognize: RecognizePages | undefined,
): Promise<void> {
  const { document } = context.request;
  const known = annotatedTexts(listOf(document.value[words.root]));
  const parsed = await parseDocuments(document.value[words.root], words, { known, context, parts, recognize });
  if (parsed.length === 0) return;
  const { valueStart, valueEnd } = document.members.find(({ key }) => key === words.root)!;
  const root = withTexts(document.bytes.toString('utf8', valueStart, valueEnd), words, parsed);
  // The references to stored files are gone.
  const keys = new Set(parsed.map(({ key }) => key));
  if (context.files) context.files = new Map([...context.files].filter(([id]) => !keys.has(id)));
  changeDocument(context, readDocument(applyEdits(document, [{ key: words.root, json: stringifyJson(root) }])));
  context.parsed = parsed.map(({ file }) => file);
  context.addStage({
    type: 'plugin',
    name: 'file-parser',
    summary: `read the text of ${parsed.length} ${parsed.length === 1 ? 'file' : 'files'}`,
    data: {
      engine: recognize === undefined ? 'cloudflare-ai' : 'mistral-ocr',
      files: parsed.map(({ file }) => ({
        hash: file.hash,
        pages: file.texts.length,
        annotated: known.has(file.hash),
      })),
    },
  });
}

/** @param json the content, which is parsed again to be changed */
function withTexts(json: string, words: FileWords, parsed: readonly ParsedPart[]): unknown {
  const files = new Map(parsed.map((one) => [one.key, one]));
  const root: unknown = parseJson(json);
  eachPart(root, words, (part, path) => {
    const key = documentKey(part, words, path);
    const file = key === undefined ? undefined : files.get(key);
    return file === undefined ? part : words.text(part, shown(file));
  });
  return Array.isArray(root) ? root.map(withoutFiles) : root;
}

function shown({ kind, file: { filename = `document.${kind}`, texts } }: ParsedPart): {
  text: string;
  filename: string;
} {
  return { text: `Text of the file ${filename}:\n\n${texts.join('\n\n')}`, filename };
}

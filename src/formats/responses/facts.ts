/** The facts that the gateway itself needs from a request in the responses format. */
import {
  addImage,
  addKind,
  type Contents,
  factMembers,
  imagesFound,
  modelsOf,
  noContents,
} from '../conversation/fact-members.ts';
import { type Fields, fieldsOf, isPresent, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { RequestFacts } from '../conversation/format.ts';
import { decodeCache } from './decode-content.ts';
import { needsOf } from './needs.ts';

export function facts(body: unknown): RequestFacts {
  const request = fieldsOf(body);
  const result = factMembers(request, {
    ...modelsOf(textOrUndefined(request['model']), request['models']),
    maxOutputTokens: request['max_output_tokens'],
    user: textOrUndefined(request['user']) ?? textOrUndefined(request['safety_identifier']),
    serviceTier: textOrUndefined(request['service_tier']),
    contents: contentsOf(request),
    needs: (inputs, everyParameter) => needsOf(request, inputs, everyParameter),
  });
  const { metadata } = request;
  if (typeof metadata === 'object' && metadata !== null) result.metadata = metadata as Record<string, string>;
  const cacheKey = textOrUndefined(request['prompt_cache_key']);
  if (cacheKey !== undefined && cacheKey !== '') result.cacheKey = cacheKey;
  return result;
}

/** Ids of the calls in the history. */
export function callIds(body: unknown): string[] {
  return listOf(fieldsOf(body)['input']).flatMap((entry) => {
    const { type, call_id: id } = fieldsOf(entry);
    return type === 'function_call' || type === 'custom_tool_call' ? (textOrUndefined(id) ?? []) : [];
  });
}

/** The parts that hold images. */
export function images(body: unknown): ReadonlySet<unknown> {
  return imagesFound((media) => void countMedia(fieldsOf(body)['input'], media));
}

/** What a prompt stored at the vendor adds is as unknown as the tokens of a document. */
function contentsOf({ input, prompt }: Fields): Contents {
  const contents = countMedia(input);
  if (isPresent(prompt)) contents.documents += 1;
  return contents;
}

/** Counts images and documents in messages and tool results, and images generated earlier. */
function countMedia(input: unknown, media = noContents()): Contents {
  for (const entry of listOf(input)) {
    const item = fieldsOf(entry);
    if (item['type'] === 'image_generation_call') media.images += 1;
    else if (item['type'] === 'computer_call_output') media.images += 1;
    countIn(item['content'], media);
    countIn(item['output'], media);
  }
  return media;
}

const KINDS = new Map<unknown, string>([
  ['input_image', 'image'],
  ['input_file', 'file'],
  ['input_audio', 'audio'],
  ['input_video', 'video'],
]);

function countIn(content: unknown, media: Contents): void {
  for (const entry of listOf(content)) {
    const part = fieldsOf(entry);
    media.marked ||= decodeCache(part) !== undefined;
    const kind = KINDS.get(part['type']);
    if (kind === undefined) continue;
    if (kind === 'image') {
      addImage(media, part);
      continue;
    }
    media.documents += 1;
    addKind(media, kind);
  }
}

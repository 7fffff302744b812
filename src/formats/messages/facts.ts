/** Reads the facts that the gateway needs of a messages request. */
import {
  addImage,
  addKind,
  type Contents,
  factMembers,
  imagesFound,
  noContents,
} from '../conversation/fact-members.ts';
import { type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { RequestFacts } from '../conversation/format.ts';
import { innerCallsOf } from './inner-calls.ts';
import { needsOf } from './needs.ts';
import { comparedIdOf, threadOf } from './thread.ts';
import { wantedTier } from './tier.ts';

export function facts(body: unknown): RequestFacts {
  const request = fieldsOf(body);
  const model = textOrUndefined(request['model']);
  const fallbacks = listOf(request['fallbacks']).map((entry) => textOrUndefined(fieldsOf(entry)['model']));
  const models = fallbacks.length > 0 ? fallbacks : listOf(request['models']);
  const result = factMembers(request, {
    model,
    fallbackModels: models.filter((name): name is string => typeof name === 'string' && name !== model),
    fallbackOnRefusal: fallbacks.length > 0,
    maxOutputTokens: request['max_tokens'],
    user: textOrUndefined(request['user']) ?? textOrUndefined(fieldsOf(request['metadata'])['user_id']),
    serviceTier: wantedTier(request),
    contents: countMedia(request),
    needs: (inputs, everyParameter) => needsOf(request, inputs, everyParameter),
  });
  const inner = innerCallsOf(request);
  if (inner !== undefined) result.inner = inner;
  const thread = threadOf(request);
  if (thread !== undefined) result.thread = thread;
  const compared = comparedIdOf(request);
  if (compared !== undefined) result.comparedId = compared;
  return result;
}

/** Ids of the tool calls in the history. */
export function callIds(body: unknown): string[] {
  return listOf(fieldsOf(body)['messages']).flatMap((message) =>
    listOf(fieldsOf(message)['content']).flatMap((entry) => {
      const block = fieldsOf(entry);
      return block['type'] === 'tool_use' ? (textOrUndefined(block['id']) ?? []) : [];
    }),
  );
}

/** The blocks that hold images. */
export function images(body: unknown): ReadonlySet<unknown> {
  return imagesFound((media) => void countMedia(fieldsOf(body), media));
}

/** Counts images and documents, including those inside tool results and documents. */
function countMedia(request: Fields, media = noContents()): Contents {
  for (const message of listOf(request['messages'])) countIn(fieldsOf(message)['content'], media);
  media.marked ||= isMarked(request['system']) || isMarked(request['tools']);
  return media;
}

function countIn(content: unknown, media: Contents): void {
  for (const entry of listOf(content)) {
    const block = fieldsOf(entry);
    if ('cache_control' in block) media.marked = true;
    if (block['type'] === 'image') {
      addImage(media, block);
    } else if (block['type'] === 'document' || block['type'] === 'container_upload') {
      media.documents += 1;
      // A plain-text document counts as text.
      if (!isTextSource(fieldsOf(block['source'])['type'])) addKind(media, 'file');
    }
    countIn(block['content'], media);
    countIn(fieldsOf(block['source'])['content'], media);
  }
}

function isTextSource(type: unknown): boolean {
  return type === 'text' || type === 'content';
}

function isMarked(blocks: unknown): boolean {
  return listOf(blocks).some((block) => 'cache_control' in fieldsOf(block));
}

/** What the gateway itself reads of a request in the messages form. */

import { type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { Asked } from '../conversation/format.ts';
import { readPreferences } from '../conversation/preferences.ts';
import { needsOf } from './needs.ts';
import { wantedTier } from './tier.ts';

export function asked(body: unknown): Asked {
  const request = fieldsOf(body);
  const model = textOrUndefined(request['model']);
  const fallbacks = listOf(request['fallbacks']).map((entry) => textOrUndefined(fieldsOf(entry)['model']));
  const models = fallbacks.length > 0 ? fallbacks : listOf(request['models']);
  const provider = readPreferences(request['provider'], request['route']);
  const media = countMedia(request);
  const result: Asked = {
    model,
    fallbackModels: models.filter((name): name is string => typeof name === 'string' && name !== model),
    fallbackOnRefusal: fallbacks.length > 0,
    provider,
    stream: request['stream'] === true,
    choices: 1,
    media: { images: media.images, documents: media.documents },
  };
  if (typeof request['max_tokens'] === 'number') result.maxOutputTokens = request['max_tokens'];
  const user = textOrUndefined(request['user']) ?? textOrUndefined(fieldsOf(request['metadata'])['user_id']);
  if (user !== undefined) result.user = user;
  const session = textOrUndefined(request['session_id']);
  if (session !== undefined) result.sessionId = session;
  const needs = needsOf(request, [...media.kinds], provider.require_parameters === true);
  if (needs !== undefined) result.needs = needs;
  const tier = wantedTier(request);
  if (tier !== undefined) result.serviceTier = tier;
  if (media.marked || (request['cache_control'] ?? null) !== null) result.marksCache = true;
  return result;
}

interface Contents {
  images: number;
  documents: number;
  kinds: Set<string>;
  /** Something is marked to be cached. */
  marked: boolean;
}

/** Pictures and documents, also inside tool results and documents. */
function countMedia(request: Fields): Contents {
  const media: Contents = { images: 0, documents: 0, kinds: new Set(), marked: false };
  for (const message of listOf(request['messages'])) countIn(fieldsOf(message)['content'], media);
  media.marked ||= isMarked(request['system']) || isMarked(request['tools']);
  return media;
}

function countIn(content: unknown, media: Contents): void {
  for (const entry of listOf(content)) {
    const block = fieldsOf(entry);
    if ('cache_control' in block) media.marked = true;
    if (block['type'] === 'image') {
      media.images += 1;
      media.kinds.add('image');
    } else if (block['type'] === 'document' || block['type'] === 'container_upload') {
      media.documents += 1;
      // A document of plain text is text.
      if (!isTextSource(fieldsOf(block['source'])['type'])) media.kinds.add('file');
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

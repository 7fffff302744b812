/** What the gateway itself reads of a request in the messages form. */

import { type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { Asked, ProviderPreferences } from '../conversation/format.ts';

export function asked(body: unknown): Asked {
  const request = fieldsOf(body);
  const model = textOrUndefined(request['model']);
  const fallbacks = listOf(request['fallbacks']).map((entry) => textOrUndefined(fieldsOf(entry)['model']));
  const models = fallbacks.length > 0 ? fallbacks : listOf(request['models']);
  const result: Asked = {
    model,
    fallbackModels: models.filter((name): name is string => typeof name === 'string' && name !== model),
    fallbackOnRefusal: fallbacks.length > 0,
    provider: fieldsOf(request['provider']) as ProviderPreferences,
    stream: request['stream'] === true,
    choices: 1,
    media: countMedia(request),
  };
  if (typeof request['max_tokens'] === 'number') result.maxOutputTokens = request['max_tokens'];
  const user = textOrUndefined(request['user']) ?? textOrUndefined(fieldsOf(request['metadata'])['user_id']);
  if (user !== undefined) result.user = user;
  const session = textOrUndefined(request['session_id']);
  if (session !== undefined) result.sessionId = session;
  return result;
}

/** Pictures and documents, also inside tool results and documents. */
function countMedia(request: Fields): Asked['media'] {
  const media = { images: 0, documents: 0 };
  for (const message of listOf(request['messages'])) countIn(fieldsOf(message)['content'], media);
  return media;
}

function countIn(content: unknown, media: Asked['media']): void {
  for (const entry of listOf(content)) {
    const block = fieldsOf(entry);
    if (block['type'] === 'image') media.images += 1;
    else if (block['type'] === 'document' || block['type'] === 'container_upload') media.documents += 1;
    countIn(block['content'], media);
    countIn(fieldsOf(block['source'])['content'], media);
  }
}

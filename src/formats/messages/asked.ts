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
    remoteMedia: countRemoteMedia(request),
  };
  if (typeof request['max_tokens'] === 'number') result.maxOutputTokens = request['max_tokens'];
  const user = textOrUndefined(request['user']) ?? textOrUndefined(fieldsOf(request['metadata'])['user_id']);
  if (user !== undefined) result.user = user;
  const session = textOrUndefined(request['session_id']);
  if (session !== undefined) result.sessionId = session;
  return result;
}

/** Images and documents by URL or file id, also inside tool results and documents. */
function countRemoteMedia(request: Fields): number {
  let count = 0;
  for (const message of listOf(request['messages'])) count += countIn(fieldsOf(message)['content']);
  return count;
}

function countIn(content: unknown): number {
  let count = 0;
  for (const entry of listOf(content)) {
    const block = fieldsOf(entry);
    const source = fieldsOf(block['source']);
    if (source['type'] === 'url' || source['type'] === 'file') count += 1;
    count += countIn(block['content']) + countIn(source['content']);
  }
  return count;
}

/** What the gateway itself wants to know of a request: where it may go, how the answer is wanted, who asks. */
import type { Asked, ProviderPreferences } from '../conversation/format.ts';
import { outputCap } from './decode.ts';
import { type JsonObject, list, object, someText } from './read.ts';

export function asked(value: unknown): Asked {
  const body = object(value) ?? {};
  const models = list(body['models']).filter((model) => typeof model === 'string');
  const model = someText(body['model']) ?? models[0];
  const result: Asked = {
    model,
    fallbackModels: [...new Set(models)].filter((name) => name !== model),
    fallbackOnRefusal: false,
    provider: preferences(object(body['provider'])),
    stream: body['stream'] === true,
    choices: typeof body['n'] === 'number' ? body['n'] : 1,
    media: countMedia(list(body['messages'])),
  };
  const include = object(body['stream_options'])?.['include_usage'];
  if (typeof include === 'boolean') result.includeUsage = include;
  const cap = outputCap(body);
  if (cap !== undefined) result.maxOutputTokens = cap;
  const user = someText(body['user']) ?? someText(body['safety_identifier']);
  if (user !== undefined) result.user = user;
  const session = someText(body['session_id']);
  if (session !== undefined) result.sessionId = session;
  const metadata = object(body['metadata']);
  if (metadata !== undefined) result.metadata = metadata as Record<string, string>;
  return result;
}

function preferences(provider: JsonObject | undefined): ProviderPreferences {
  const { order, only, ignore, allow_fallbacks } = (provider ?? {}) as ProviderPreferences;
  const result: ProviderPreferences = {};
  if (order !== undefined) result.order = order;
  if (only !== undefined) result.only = only;
  if (ignore !== undefined) result.ignore = ignore;
  if (allow_fallbacks !== undefined) result.allow_fallbacks = allow_fallbacks;
  return result;
}

/** Every picture, and everything else that is read at a rate of its own: documents, sound, video. */
function countMedia(messages: readonly unknown[]): Asked['media'] {
  const media = { images: 0, documents: 0 };
  for (const message of messages) {
    const own = object(message);
    media.images += list(own?.['images']).length;
    for (const item of list(own?.['content'])) {
      const part = object(item) ?? {};
      if ('image_url' in part) media.images += 1;
      else if ('file' in part || 'video_url' in part || 'input_audio' in part) media.documents += 1;
    }
  }
  return media;
}

/** What the gateway itself wants to know of a request: where it may go, how the answer is wanted, who asks. */
import type { Asked } from '../conversation/format.ts';
import { readPreferences } from '../conversation/preferences.ts';
import { outputCap } from './decode.ts';
import { needsOf } from './needs.ts';
import { type JsonObject, list, object, someText } from './read.ts';

export function asked(value: unknown): Asked {
  const body = object(value) ?? {};
  const models = list(body['models']).filter((model) => typeof model === 'string');
  const model = someText(body['model']) ?? models[0];
  const provider = readPreferences(body['provider'], body['route']);
  const media = countMedia(list(body['messages']));
  const result: Asked = {
    model,
    fallbackModels: [...new Set(models)].filter((name) => name !== model),
    fallbackOnRefusal: false,
    provider,
    stream: body['stream'] === true,
    choices: typeof body['n'] === 'number' ? body['n'] : 1,
    media: { images: media.images, documents: media.documents },
  };
  const needs = needsOf(body, [...media.kinds], provider.require_parameters === true);
  if (needs !== undefined) result.needs = needs;
  const tier = someText(body['service_tier']);
  if (tier !== undefined) result.serviceTier = tier;
  const cacheKey = someText(body['prompt_cache_key']);
  if (cacheKey !== undefined) result.cacheKey = cacheKey;
  if (media.marked || (body['cache_control'] ?? null) !== null) result.marksCache = true;
  const include = object(body['stream_options'])?.['include_usage'];
  if (typeof include === 'boolean') result.includeUsage = include;
  const cap = outputCap(body);
  if (cap !== undefined) result.maxOutputTokens = cap;
  const user = someText(body['user']) ?? someText(body['safety_identifier']);
  if (user !== undefined) result.user = user;
  const session = someText(body['session_id']);
  if (session !== undefined) result.sessionId = session;
  if (object(body['debug'])?.['echo_upstream_body'] === true) result.echoUpstreamBody = true;
  const metadata = object(body['metadata']);
  if (metadata !== undefined) result.metadata = metadata as Record<string, string>;
  return result;
}

interface Contents {
  images: number;
  documents: number;
  kinds: Set<string>;
  /** Something is marked to be cached. */
  marked: boolean;
}

/** Every picture, and everything else that is read at a rate of its own: documents, sound, video. */
function countMedia(messages: readonly unknown[]): Contents {
  const media: Contents = { images: 0, documents: 0, kinds: new Set(), marked: false };
  for (const message of messages) {
    const own = object(message);
    media.images += list(own?.['images']).length;
    for (const item of list(own?.['content'])) countPart(object(item) ?? {}, media);
  }
  return media;
}

function countPart(part: JsonObject, media: Contents): void {
  if ('cache_control' in part || 'prompt_cache_breakpoint' in part) media.marked = true;
  if ('image_url' in part) {
    media.images += 1;
    media.kinds.add('image');
  } else if ('file' in part || 'video_url' in part || 'input_audio' in part) {
    media.documents += 1;
    media.kinds.add('file' in part ? 'file' : 'video_url' in part ? 'video' : 'audio');
  }
}

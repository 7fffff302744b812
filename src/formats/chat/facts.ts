/** Reads the facts that the gateway needs of a chat request: model and routing, output options, user. */
import {
  addImage,
  addKind,
  type Contents,
  factMembers,
  imagesFound,
  modelsOf,
  noContents,
} from '../conversation/fact-members.ts';
import type { RequestFacts } from '../conversation/format.ts';
import { outputCap } from './decode.ts';
import { needsOf } from './needs.ts';
import { type JsonObject, list, object, someText } from './read.ts';

export function facts(value: unknown): RequestFacts {
  const body = object(value) ?? {};
  const result = factMembers(body, {
    ...modelsOf(someText(body['model']), body['models']),
    choices: typeof body['n'] === 'number' ? body['n'] : 1,
    maxOutputTokens: outputCap(body),
    user: someText(body['user']) ?? someText(body['safety_identifier']),
    serviceTier: someText(body['service_tier']),
    contents: countMedia(list(body['messages'])),
    needs: (inputs, everyParameter) => needsOf(body, inputs, everyParameter),
  });
  const cacheKey = someText(body['prompt_cache_key']);
  if (cacheKey !== undefined) result.cacheKey = cacheKey;
  const include = object(body['stream_options'])?.['include_usage'];
  if (typeof include === 'boolean') result.includeUsage = include;
  if (object(body['debug'])?.['echo_upstream_body'] === true) result.echoUpstreamBody = true;
  const metadata = object(body['metadata']);
  if (metadata !== undefined) result.metadata = metadata as Record<string, string>;
  return result;
}

/** Ids of the tool calls in the history. */
export function callIds(value: unknown): string[] {
  return list(object(value)?.['messages']).flatMap((message) =>
    list(object(message)?.['tool_calls']).flatMap((call) => someText(object(call)?.['id']) ?? []),
  );
}

/** The parts that hold images. */
export function images(value: unknown): ReadonlySet<unknown> {
  return imagesFound((media) => void countMedia(list(object(value)?.['messages']), media));
}

/** Counts the media whose tokens are estimated separately: images, documents, audio, video. */
function countMedia(messages: readonly unknown[], media = noContents()): Contents {
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
    // Another part that only has the member may hold text.
    addImage(media, part['type'] === 'image_url' ? part : undefined);
  } else if ('file' in part || 'video_url' in part || 'input_audio' in part) {
    media.documents += 1;
    addKind(media, 'file' in part ? 'file' : 'video_url' in part ? 'video' : 'audio');
  }
}

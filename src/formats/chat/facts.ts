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
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { RequestFacts } from '../conversation/format.ts';
import { outputCap } from './decode.ts';
import { needsOf } from './needs.ts';

export function facts(value: unknown): RequestFacts {
  const body = fieldsOf(value);
  const result = factMembers(body, {
    ...modelsOf(nonEmptyText(body['model']), body['models']),
    choices: typeof body['n'] === 'number' ? body['n'] : 1,
    maxOutputTokens: outputCap(body),
    user: nonEmptyText(body['user']) ?? nonEmptyText(body['safety_identifier']),
    serviceTier: nonEmptyText(body['service_tier']),
    contents: countMedia(listOf(body['messages'])),
    needs: (inputs, everyParameter) => needsOf(body, inputs, everyParameter),
  });
  const cacheKey = nonEmptyText(body['prompt_cache_key']);
  if (cacheKey !== undefined) result.cacheKey = cacheKey;
  const include = fieldsOrUndefined(body['stream_options'])?.['include_usage'];
  if (typeof include === 'boolean') result.includeUsage = include;
  if (listOf(body['tools']).some((tool) => fieldsOrUndefined(tool)?.['type'] === 'custom')) result.customTools = true;
  if (fieldsOrUndefined(body['debug'])?.['echo_upstream_body'] === true) result.echoUpstreamBody = true;
  const metadata = fieldsOrUndefined(body['metadata']);
  if (metadata !== undefined) result.metadata = metadata as Record<string, string>;
  return result;
}

/** Ids of the tool calls in the history. */
export function callIds(value: unknown): string[] {
  return listOf(fieldsOrUndefined(value)?.['messages']).flatMap((message) =>
    listOf(fieldsOrUndefined(message)?.['tool_calls']).flatMap(
      (call) => nonEmptyText(fieldsOrUndefined(call)?.['id']) ?? [],
    ),
  );
}

/** The parts that hold images. */
export function images(value: unknown): ReadonlySet<unknown> {
  return imagesFound((media) => void countMedia(listOf(fieldsOrUndefined(value)?.['messages']), media));
}

/** Counts the media whose tokens are estimated separately: images, documents, audio, video. */
function countMedia(messages: readonly unknown[], media = noContents()): Contents {
  for (const message of messages) {
    const own = fieldsOrUndefined(message);
    media.images += listOf(own?.['images']).length;
    for (const item of listOf(own?.['content'])) countPart(fieldsOf(item), media);
  }
  return media;
}

function countPart(part: Fields, media: Contents): void {
  if ('cache_control' in part || 'prompt_cache_breakpoint' in part) media.marked = true;
  if ('image_url' in part) {
    // Another part that only has the member may hold text.
    addImage(media, part['type'] === 'image_url' ? part : undefined);
  } else if ('file' in part || 'video_url' in part || 'input_audio' in part) {
    media.documents += 1;
    addKind(media, 'file' in part ? 'file' : 'video_url' in part ? 'video' : 'audio');
  }
}

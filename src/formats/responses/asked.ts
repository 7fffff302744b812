/** What the gateway itself reads of a request in the responses form. */
import { fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { Asked } from '../conversation/format.ts';
import { readPreferences } from '../conversation/preferences.ts';
import { decodeCache } from './decode-content.ts';
import { needsOf } from './needs.ts';

export function asked(body: unknown): Asked {
  const request = fieldsOf(body);
  const models = listOf(request['models']).filter((name) => typeof name === 'string');
  const model = textOrUndefined(request['model']) ?? models[0];
  const provider = readPreferences(request['provider'], request['route']);
  const media = countMedia(request['input']);
  const result: Asked = {
    model,
    fallbackModels: [...new Set(models)].filter((name) => name !== model),
    fallbackOnRefusal: false,
    provider,
    stream: request['stream'] === true,
    choices: 1,
    media: { images: media.images, documents: media.documents },
  };
  if (typeof request['max_output_tokens'] === 'number') result.maxOutputTokens = request['max_output_tokens'];
  const user = textOrUndefined(request['user']) ?? textOrUndefined(request['safety_identifier']);
  if (user !== undefined) result.user = user;
  const session = textOrUndefined(request['session_id']);
  if (session !== undefined) result.sessionId = session;
  const metadata = request['metadata'];
  if (typeof metadata === 'object' && metadata !== null) result.metadata = metadata as Record<string, string>;
  const needs = needsOf(request, [...media.kinds], provider.require_parameters === true);
  if (needs !== undefined) result.needs = needs;
  const tier = textOrUndefined(request['service_tier']);
  if (tier !== undefined) result.serviceTier = tier;
  const cacheKey = textOrUndefined(request['prompt_cache_key']);
  if (cacheKey !== undefined && cacheKey !== '') result.cacheKey = cacheKey;
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

/** Pictures and documents of messages, of the results of calls, and pictures made earlier. */
function countMedia(input: unknown): Contents {
  const media: Contents = { images: 0, documents: 0, kinds: new Set(), marked: false };
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
    if (kind === 'image') media.images += 1;
    else media.documents += 1;
    media.kinds.add(kind);
  }
}

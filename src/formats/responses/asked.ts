/** What the gateway itself reads of a request in the responses form. */
import { fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { Asked, ProviderPreferences } from '../conversation/format.ts';

export function asked(body: unknown): Asked {
  const request = fieldsOf(body);
  const models = listOf(request['models']).filter((name) => typeof name === 'string');
  const model = textOrUndefined(request['model']) ?? models[0];
  const result: Asked = {
    model,
    fallbackModels: [...new Set(models)].filter((name) => name !== model),
    fallbackOnRefusal: false,
    provider: fieldsOf(request['provider']) as ProviderPreferences,
    stream: request['stream'] === true,
    choices: 1,
    media: countMedia(request['input']),
  };
  if (typeof request['max_output_tokens'] === 'number') result.maxOutputTokens = request['max_output_tokens'];
  const user = textOrUndefined(request['user']) ?? textOrUndefined(request['safety_identifier']);
  if (user !== undefined) result.user = user;
  const session = textOrUndefined(request['session_id']);
  if (session !== undefined) result.sessionId = session;
  const metadata = request['metadata'];
  if (typeof metadata === 'object' && metadata !== null) result.metadata = metadata as Record<string, string>;
  return result;
}

/** Pictures and documents of messages, of the results of calls, and pictures made earlier. */
function countMedia(input: unknown): Asked['media'] {
  const media = { images: 0, documents: 0 };
  for (const entry of listOf(input)) {
    const item = fieldsOf(entry);
    if (item['type'] === 'image_generation_call') media.images += 1;
    else if (item['type'] === 'computer_call_output') media.images += 1;
    countIn(item['content'], media);
    countIn(item['output'], media);
  }
  return media;
}

function countIn(content: unknown, media: Asked['media']): void {
  for (const entry of listOf(content)) {
    const { type } = fieldsOf(entry);
    if (type === 'input_image') media.images += 1;
    else if (type === 'input_file' || type === 'input_audio' || type === 'input_video') media.documents += 1;
  }
}

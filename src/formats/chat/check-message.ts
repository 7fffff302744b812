/** Validates one message of a request: what each role and each kind of content part requires. */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, fieldsOrUndefined, listOf, nonEmptyText, textOf } from '../conversation/fields.ts';
import { base64Fault, dataUrlFault } from '../conversation/media-bytes.ts';
import { checkUpdate } from './configuration-update.ts';

export function checkMessage(message: Fields, path: string): void {
  const role = textOf(message['role']);
  const content = message['content'];
  if (role === 'tool' && nonEmptyText(message['tool_call_id']) === undefined) {
    throw invalidField(`${path}.tool_call_id`, 'is missing');
  }
  if (role !== 'assistant' && (content === undefined || content === null)) {
    throw invalidField(`${path}.content`, 'is missing');
  }
  checkUpdate(message, path);
  listOf(content).forEach((part, index) => void checkPart(fieldsOf(part), `${path}.content[${index}]`));
  listOf(message['tool_calls']).forEach((call, index) => {
    const value = fieldsOf(call);
    if (value['function'] === undefined && value['custom'] === undefined) {
      throw invalidField(`${path}.tool_calls[${index}].function`, 'is missing');
    }
    for (const kind of ['function', 'custom']) {
      // Translation would lose a call without a name, and its result with it.
      if (fieldsOrUndefined(value[kind])?.['name'] === '') {
        throw invalidField(`${path}.tool_calls[${index}].${kind}.name`, 'must not be empty');
      }
    }
  });
}

/** The required member of each kind of part. */
const NEEDS = new Map(
  Object.entries({
    text: 'text',
    image_url: 'image_url',
    input_audio: 'input_audio',
    video_url: 'video_url',
    input_video: 'video_url',
    file: 'file',
  }),
);

function checkPart(part: Fields, path: string): void {
  const type = textOf(part['type']);
  const needed = NEEDS.get(type);
  if (needed !== undefined && (part[needed] === undefined || part[needed] === null)) {
    throw invalidField(`${path}.${needed}`, 'is missing');
  }
  if (type === 'image_url') checkMedium(textOf(fieldsOrUndefined(part['image_url'])?.['url']), `${path}.image_url.url`);
  if (needed === 'video_url')
    checkMedium(textOf(fieldsOrUndefined(part['video_url'])?.['url']), `${path}.video_url.url`);
  if (type === 'input_audio') {
    const fault = base64Fault(textOf(fieldsOrUndefined(part['input_audio'])?.['data']));
    if (fault !== undefined) throw invalidField(`${path}.input_audio.data`, fault);
  }
  if (type === 'file') {
    const file = fieldsOf(part['file']);
    const data = nonEmptyText(file['file_data']);
    if (data !== undefined) checkMedium(data, `${path}.file.file_data`);
    else if (nonEmptyText(file['file_id']) === undefined)
      throw invalidField(`${path}.file`, 'requires file_data or file_id');
  }
}

function checkMedium(address: string, path: string): void {
  checkAddress(address, path);
  const fault = dataUrlFault(address);
  if (fault !== undefined) throw invalidField(path, fault);
}

/** The first base64 characters of JPEG, PNG, GIF and WebP. */
const IMAGE = /^(\/9j\/|iVBORw0KGgo|R0lGOD|UklGR)/;

/**
 * Accepts only URLs that an upstream may fetch, and data URLs; never `file:` and the like (songquanpeng/one-api#2387).
 */
function checkAddress(address: string, path: string): void {
  if (/^(https?:\/\/|gs:\/\/|s3:\/\/)[^\s]/i.test(address)) return;
  const data = /^data:([^;,]*)[^,]*,/i.exec(address.slice(0, 256));
  if (data === null) throw invalidField(path, 'must be an http(s) URL or a data: URL');
  if (/^[\w.+-]+\/[\w.+-]+$/.test(data[1]!)) return;
  // A wildcard is accepted when the bytes identify their type (openai/openai-agents-js#722).
  if (data[1] === 'image/*' && IMAGE.test(address.slice(data[0].length, data[0].length + 16))) return;
  throw invalidField(path, 'must have a concrete media type');
}

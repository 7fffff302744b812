/** A multipart form of OpenAI's clients as the JSON of the public format. */
import { invalidField } from '../../base/errors.ts';
import type { Form } from '../../base/form.ts';
import { type Fields, fieldsOf, isFields } from '../conversation/fields.ts';
import { booleanOf, numberOf, oneFile } from '../direct/form.ts';

const LISTS = [
  'timestamp_granularities',
  'include',
  'known_speaker_names',
  'known_speaker_references',
  'keywords',
  'languages',
];
/** A setting of an object, as the SDKs send it. */
const SETTING = /^(chunking_strategy)\[(\w{1,64})\]$/;
const EXTENSION = /\.([A-Za-z0-9]{1,8})$/;

/** @throws GatewayError 400 with the name of the part */
export function transcriptionOfForm({ texts, files }: Form): Fields {
  const file = oneFile(files, 'file');
  const body: Fields = {
    input_audio: {
      data: file.bytes.toString('base64'),
      format: EXTENSION.exec(file.filename)?.[1]?.toLowerCase() ?? file.mediaType.replace(/^\w+\//, '').slice(0, 32),
    },
  };
  for (const [part, values] of texts) {
    const name = part.replace(/\[\]$/, '');
    const [, object, setting] = SETTING.exec(part) ?? [];
    if (LISTS.includes(name)) body[name] = values;
    else if (values.length > 1) throw invalidField(name, 'must be given once');
    else if (object !== undefined) body[object] = { ...settingsSoFar(body, object), [setting!]: values[0]! };
    else if (isFields(body[name]) && name !== 'input_audio') throw invalidField(name, 'must be given once');
    else if (name === 'temperature') body[name] = numberOf(name, values[0]!);
    else if (name === 'stream') body[name] = booleanOf(name, values[0]!);
    else if (name === 'provider' || name === 'trace') body[name] = jsonOf(name, values[0]!);
    else body[name] = values[0]!;
  }
  return body;
}

function settingsSoFar(body: Fields, name: string): Fields {
  if (typeof body[name] === 'string') throw invalidField(name, 'must be given once');
  return fieldsOf(body[name]);
}

function jsonOf(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidField(name, 'must be JSON');
  }
}

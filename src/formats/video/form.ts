/** The form of OpenAI's clients as the JSON of `POST /videos`. */
import Type from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { Form } from '../../base/form.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import type { Fields } from '../conversation/fields.ts';
import { numberOf } from '../direct/form.ts';

const IMAGE_URL = 'input_reference[image_url]';

/** @throws GatewayError 400 with the name of the part */
export function videoOfForm({ texts, files }: Form): Fields {
  const body: Fields = {};
  for (const [name, given] of files) {
    if (name !== 'input_reference') throw invalidField(name, 'is not a file of this request');
    body['input_references'] = given.map(({ bytes }) => {
      const type = sniffMediaType(bytes);
      if (!type?.startsWith('image/')) throw invalidField(name, 'is not an image');
      return referenceTo(`data:${type};base64,${bytes.toString('base64')}`);
    });
  }
  for (const [name, [value, ...others]] of texts) {
    if (others.length > 0) throw invalidField(name, 'must be given once');
    if (name === 'seconds' || name === 'duration') body['duration'] = numberOf(name, value!);
    else if (name === 'seed') body[name] = numberOf(name, value!);
    else if (name === IMAGE_URL && body['input_references'] === undefined)
      body['input_references'] = [referenceTo(value!)];
    else if (name.startsWith('input_reference')) {
      throw invalidField(name, `is not supported: send one image as input_reference, or its data URL as ${IMAGE_URL}`);
    } else body[name] = value;
  }
  return body;
}

function referenceTo(url: string): Fields {
  return { type: 'image_url', image_url: { url } };
}

export const videoFormSchema = Type.Object(
  {
    model: Type.String(),
    prompt: Type.String(),
    seconds: Type.Optional(Type.String()),
    size: Type.Optional(Type.String()),
    input_reference: Type.Optional(Type.Unsafe({ type: 'string', format: 'binary' })),
  },
  { additionalProperties: true, $id: 'VideoForm' },
);

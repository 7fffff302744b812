/** The forms of OpenAI's clients for edits and variations as the JSON of `POST /images`. */
import { invalidField } from '../../base/errors.ts';
import type { Form, FormFile } from '../../base/form.ts';
import type { JsonDocument } from '../../base/json.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import type { Fields } from '../conversation/fields.ts';
import { booleanOf, numberOf } from '../direct/form.ts';
import { imagesIn } from './request.ts';

const NUMBERS = ['n', 'output_compression', 'seed', 'partial_images'];
const VARIATION = 'Make a variation of this image.';

/** @throws GatewayError 400 with the name of the part */
export function editOfForm({ texts, files }: Form): Fields {
  const images: FormFile[] = [];
  for (const [part, given] of files) {
    const name = part.replace(/\[\]$/, '');
    if (name === 'mask' || name === 'markup') throw invalidField(name, 'is not supported; describe the edit in prompt');
    if (name !== 'image') throw invalidField(part, 'is not a file of this request');
    images.push(...given);
  }
  const body: Fields = { input_references: images.map(referenceOf) };
  for (const [name, values] of texts) {
    const [value] = values;
    if (/^(?:image|mask|markup|input_references)(?:\[|$)/.test(name)) throw invalidField(name, 'must be a file');
    if (values.length > 1) throw invalidField(name, 'must be given once');
    if (NUMBERS.includes(name)) body[name] = numberOf(name, value!);
    else if (name === 'stream') body[name] = booleanOf(name, value!);
    else body[name] = value;
  }
  return body;
}

export function variationOfForm(form: Form): Fields {
  return { prompt: VARIATION, ...editOfForm(form) };
}

function referenceOf({ bytes }: FormFile, index: number): Fields {
  const type = sniffMediaType(bytes);
  if (!type?.startsWith('image/')) throw invalidField(`image[${index}]`, 'is not an image');
  return { type: 'image_url', image_url: { url: `data:${type};base64,${bytes.toString('base64')}` } };
}

export function checkEdited(document: JsonDocument): void {
  if (imagesIn(document) === 0) throw invalidField('image', 'must be an image');
}

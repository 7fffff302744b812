/** The request body of `POST /embeddings`: schema, rules, and the view that adapters read. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { type Fields, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { checkCommon, commonMembers } from '../direct/body.ts';

/** More inputs than any service accepts per call; longer lists are a client error. */
export const MAX_INPUTS = 2048;

export type Encoding = 'float' | 'base64';

export type EmbeddingInput =
  | { type: 'text'; text: string }
  | { type: 'tokens'; tokens: number[] }
  | { type: 'parts'; parts: InputPart[] };

export type InputPart =
  | { type: 'text'; text: string }
  /** `url` may be a data URL. */
  | { type: 'image'; url: string }
  /** Base64 or a URL. */
  | { type: 'audio' | 'video' | 'file'; data: string; format?: string };

export interface EmbeddingRequest {
  /** The original body, for services that speak the public format. */
  document: JsonDocument;
  /** Number of requested vectors. */
  count: number;
  inputs(): readonly EmbeddingInput[];
  encoding: Encoding;
  dimensions?: number;
  inputType?: string;
}

export const schema: TSchema = Type.Object(
  {
    ...commonMembers,
    input: Type.Unsafe({
      type: ['string', 'array'],
      description: 'A string, a list of strings, token ids, lists of token ids, or objects {content: [parts]}',
    }),
    dimensions: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    encoding_format: Type.Optional(Type.Enum(['float', 'base64'])),
    input_type: Type.Optional(Type.String({ maxLength: 256 })),
  },
  { $id: 'EmbeddingsRequest' },
);

/** The members that hold a part's content, by part type. */
const PART_MEMBERS: Record<string, readonly [string, string]> = {
  image_url: ['image_url', 'url'],
  input_audio: ['input_audio', 'data'],
  input_video: ['input_video', 'data'],
  input_file: ['input_file', 'data'],
};

export function check(document: JsonDocument): void {
  checkCommon(document);
  const input = document.structure['input'];
  if (typeof input === 'string') return;
  const items = listOf(input);
  if (items.length === 0) throw invalidField('input', 'must not be empty');
  if (typeof items[0] === 'number') {
    items.forEach((token, index) => void checkToken(token, `input[${index}]`));
    return;
  }
  if (items.length > MAX_INPUTS) throw invalidField('input', `must have at most ${MAX_INPUTS} items`);
  const first = kindOf(items[0]);
  items.forEach((item, index) => {
    const path = `input[${index}]`;
    if (kindOf(item) !== first || first === 'other') {
      throw invalidField(
        path,
        'must have the same type as the other items: strings, lists of token ids, or objects with content',
      );
    }
    if (first === 'list') checkTokens(item as unknown[], path);
    else if (first === 'object') checkItem(item as Fields, path);
  });
}

function kindOf(item: unknown): 'text' | 'list' | 'object' | 'other' {
  if (typeof item === 'string') return 'text';
  if (Array.isArray(item)) return 'list';
  return isFields(item) ? 'object' : 'other';
}

function checkTokens(tokens: readonly unknown[], path: string): void {
  if (tokens.length === 0) throw invalidField(path, 'must not be empty');
  tokens.forEach((token, index) => void checkToken(token, `${path}[${index}]`));
}

function checkToken(token: unknown, path: string): void {
  if (!(Number.isSafeInteger(token) && (token as number) >= 0)) throw invalidField(path, 'must be a token id');
}

function checkItem(item: Fields, path: string): void {
  const parts = item['content'];
  if (!Array.isArray(parts) || parts.length === 0) throw invalidField(`${path}.content`, 'must be a list of parts');
  parts.forEach((value: unknown, index) => {
    const place = `${path}.content[${index}]`;
    if (!isFields(value)) throw invalidField(place, 'must be an object');
    const type = textOf(value['type']);
    if (type === 'text') {
      if (typeof value['text'] !== 'string') throw invalidField(`${place}.text`, 'must be a string');
      return;
    }
    const members = PART_MEMBERS[type];
    if (members === undefined) {
      throw invalidField(`${place}.type`, `must be one of text, ${Object.keys(PART_MEMBERS).join(', ')}`);
    }
    const [outer, inner] = members;
    const content = value[outer];
    if (!isFields(content)) throw invalidField(`${place}.${outer}`, 'must be an object');
    const given = textOf(content[inner]);
    if (given === '') throw invalidField(`${place}.${outer}.${inner}`, 'must be a string');
    if (type === 'image_url' && !/^(?:https?:\/\/|data:)\S/i.test(given.slice(0, 64))) {
      throw invalidField(`${place}.${outer}.${inner}`, 'must be an http(s) URL or a data: URL');
    }
  });
}

export function decode(document: JsonDocument): EmbeddingRequest {
  const body = document.structure;
  let inputs: readonly EmbeddingInput[] | undefined;
  const dimensions = body['dimensions'];
  const inputType = textOrUndefined(document.member('input_type'));
  return {
    document,
    count: countOf(body['input']),
    inputs() {
      inputs ??= decodeInputs(document.member('input'));
      return inputs;
    },
    encoding: body['encoding_format'] === 'base64' ? 'base64' : 'float',
    ...(typeof dimensions === 'number' && { dimensions }),
    ...(inputType !== undefined && { inputType }),
  };
}

function countOf(input: unknown): number {
  if (!Array.isArray(input) || typeof input[0] === 'number') return 1;
  return input.length;
}

function decodeInputs(input: unknown): EmbeddingInput[] {
  if (typeof input === 'string') return [{ type: 'text', text: input }];
  const items = listOf(input);
  if (typeof items[0] === 'number') return [{ type: 'tokens', tokens: items as number[] }];
  return items.map((item) => {
    if (typeof item === 'string') return { type: 'text', text: item };
    if (Array.isArray(item)) return { type: 'tokens', tokens: item as number[] };
    return { type: 'parts', parts: listOf((item as Fields)['content']).map((part) => decodePart(part as Fields)) };
  });
}

function decodePart(part: Fields): InputPart {
  const type = textOf(part['type']);
  if (type === 'text') return { type: 'text', text: textOf(part['text']) };
  if (type === 'image_url') return { type: 'image', url: textOf((part['image_url'] as Fields)['url']) };
  const content = part[type] as Fields;
  const format = textOrUndefined(content['format']);
  const kind = type.slice('input_'.length) as 'audio' | 'video' | 'file';
  return { type: kind, data: textOf(content['data']), ...(format !== undefined && { format }) };
}

/** Counts images, and other media, which have their own rate. */
export function mediaOf(document: JsonDocument): { images: number; documents: number } {
  const media = { images: 0, documents: 0 };
  for (const item of listOf(document.structure['input'])) {
    if (!isFields(item)) continue;
    for (const part of listOf(item['content'])) {
      const type = isFields(part) ? part['type'] : undefined;
      if (type === 'image_url') media.images += 1;
      else if (type !== 'text') media.documents += 1;
    }
  }
  return media;
}

/** Number of token ids; undefined if the input is text. */
export function tokensGiven(document: JsonDocument): number | undefined {
  const items = listOf(document.structure['input']);
  if (typeof items[0] === 'number') return items.length;
  if (!Array.isArray(items[0])) return undefined;
  return items.reduce<number>((sum, item) => sum + (item as unknown[]).length, 0);
}

/** Length of the longest input in bytes. A token id counts as one byte, because no token is shorter. */
export function longestInput(document: JsonDocument): number {
  const input = document.structure['input'];
  if (!Array.isArray(input) || typeof input[0] === 'number') return sizeOf(input);
  return input.reduce<number>((most, item) => Math.max(most, sizeOf(item)), 0);
}

function sizeOf(input: unknown): number {
  return typeof input === 'string' || Array.isArray(input) ? input.length : 0;
}

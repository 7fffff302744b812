/** Moderation of texts and images in OpenAI's format: whether they break rules, and which. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import { encodeFailure } from '../chat/encode-failure.ts';
import { decodeFailure } from '../chat/failure.ts';
import { countOf, type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { costMembers } from '../conversation/format.ts';
import { Uncarried } from '../conversation/losses.ts';
import { dataUrlFault } from '../conversation/media-bytes.ts';
import { askedOf, checkCommon, commonMembers, loggedPrompt } from '../direct/body.ts';
import {
  type Adapter,
  type DirectFormat,
  estimatedTokens,
  inputUsage,
  type Reply,
  type Step,
} from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import { textsWith } from '../texts/index.ts';

interface ModerationRequest {
  input: unknown;
  /** How many verdicts are due: one for each text of a list, one for a list of parts. */
  verdicts: number;
  bytes: number;
  images: number;
}

interface ModerationAnswer {
  results: readonly Fields[];
}

export type ModerationAdapter = Adapter<ModerationRequest, ModerationAnswer>;

/** For clients that name none, as OpenAI's do. */
const DEFAULT_MODEL = 'omni-moderation-latest';
const MOST_INPUTS = 2_048;
const IMAGE_TOKENS = 2_000;

const { model, ...others } = commonMembers;

const schema: TSchema = Type.Object(
  {
    ...others,
    model: Type.Optional(model!),
    input: Type.Unsafe({
      type: ['string', 'array'],
      maxItems: MOST_INPUTS,
      description: 'A text, texts, or parts: {type: text, text} and {type: image_url, image_url: {url}}',
    }),
  },
  { $id: 'ModerationRequest' },
);

function check(document: JsonDocument): void {
  if (document.member('model') !== undefined) checkCommon(document);
  const input = document.member('input');
  if (input === '' || (Array.isArray(input) && input.length === 0)) throw invalidField('input', 'must not be empty');
  const parts = isFields(listOf(input)[0]);
  listOf(input).forEach((item, index) => {
    const path = `input[${index}]`;
    if (!parts && typeof item !== 'string') throw invalidField(path, 'must be a string, like the items before it');
    if (!parts) return;
    const { type, text, image_url: image } = fieldsOf(item);
    if (type === 'text' && typeof text !== 'string') throw invalidField(`${path}.text`, 'must be a string');
    if (type === 'image_url') checkImage(textOf(fieldsOf(image)['url']), `${path}.image_url.url`);
    if (type !== 'text' && type !== 'image_url') throw invalidField(`${path}.type`, 'must be text or image_url');
  });
}

function checkImage(url: string, path: string): void {
  if (!/^(?:https?:\/\/|data:)\S/i.test(url.slice(0, 64)))
    throw invalidField(path, 'must be an http(s) URL or a data: URL');
  const fault = dataUrlFault(url);
  if (fault !== undefined) throw invalidField(path, fault);
}

function decode(document: JsonDocument): ModerationRequest {
  const input = document.member('input');
  const list = listOf(input);
  const isTexts = typeof list[0] === 'string';
  const images = imagesIn(list);
  return { input, verdicts: isTexts ? list.length : 1, bytes: document.bytes.length, images };
}

function imagesIn(list: readonly unknown[]): number {
  return list.filter((item) => fieldsOf(item)['type'] === 'image_url').length;
}

export const moderation: DirectFormat<ModerationRequest, ModerationAnswer> = {
  id: 'moderation',
  schema,
  check,
  texts: textsWith(),
  loggedContent: (document) => loggedPrompt(document, 'input'),
  facts(document) {
    const images = imagesIn(listOf(document.structure['input']));
    const facts = askedOf(document, { images, documents: 0 });
    return facts.model === undefined ? { ...facts, model: DEFAULT_MODEL } : facts;
  },
  decode,
  most: ({ bytes, images }) => ({ promptTokens: bytes + images * IMAGE_TOKENS, inputImages: images }),
  likely: ({ bytes, images }) => inputUsage(estimatedTokens(bytes) + images * IMAGE_TOKENS),
  encodeReply: ({ results }, _request, { id, model: answering }, { cost, metadata }) =>
    stringifyJson({
      id,
      model: answering,
      results,
      usage: costMembers(cost),
      ...(metadata && { [metadata.key]: metadata.value }),
    }),
  encodeFailure,
};

/** @param images false: the service takes texts only */
export function openaiModeration({ images = true }: { images?: boolean } = {}): ModerationAdapter {
  return {
    start(request, target) {
      if (!images && request.images > 0) throw new Uncarried('input', 'the service takes no images');
      const { input } = request;
      return {
        call: { path: '/moderations', body: stringifyJson({ model: target.model, input }) },
        read: (reply) => read(reply, request.verdicts),
      };
    },
    decodeFailure,
  };
}

/** A missing verdict must not look like one that flags nothing. */
function read(reply: Reply, verdicts: number): Step<ModerationAnswer> {
  const object = readObject(reply);
  if ('failure' in object) return object;
  const { results, id, usage } = object.value;
  const list = listOf(results).map(fieldsOf);
  if (list.length !== verdicts) return { failure: malformed(`${list.length} verdicts for ${verdicts} inputs`) };
  if (list.some(({ categories }) => !isFields(categories)))
    return { failure: malformed('a verdict without categories') };
  const told = countOf(fieldsOf(usage)['prompt_tokens']);
  const upstreamId = textOrUndefined(id);
  return {
    answer: { results: list.map(flagged) },
    ...(told > 0 && { usage: inputUsage(told) }),
    ...(upstreamId !== undefined && { upstreamId }),
  };
}

/** Some services leave the sum of their categories to the client. */
function flagged(result: Fields): Fields {
  if (typeof result['flagged'] === 'boolean') return result;
  return { flagged: Object.values(fieldsOf(result['categories'])).includes(true), ...result };
}

export const ModerationReply = Type.Object(
  {
    id: Type.String({ description: '`gen-...`' }),
    model: Type.String(),
    results: Type.Array(
      Type.Object(
        {
          flagged: Type.Boolean(),
          categories: Type.Record(Type.String(), Type.Unsafe({ type: ['boolean', 'null'] })),
        },
        { additionalProperties: true },
      ),
      { description: 'In the order of the inputs' },
    ),
  },
  { additionalProperties: true, $id: 'Moderation' },
);

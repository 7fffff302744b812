/** The request body of `POST /audio/transcriptions` and `/audio/translations`: schema, rules, and the view of adapters. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { sniffMediaType } from '../../base/media-type.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { checkCommon, commonMembers } from '../direct/body.ts';
import { audioSeconds } from './duration.ts';

const REPLY_FORMATS = ['json', 'verbose_json', 'text', 'srt', 'vtt'] as const;
type ReplyFormat = (typeof REPLY_FORMATS)[number];
const GRANULARITIES = ['segment', 'word'] as const;

export interface TranscriptionRequest {
  audio: Buffer;
  /** From the bytes if they show it, else as stated. */
  mediaType: string;
  filename: string;
  /** Seconds, if the bytes show it. */
  seconds?: number;
  /** Into English. */
  translates: boolean;
  language?: string;
  prompt?: string;
  temperature?: number;
  replyFormat: ReplyFormat;
  /** The reply needs more than the text: the times of segments and words. */
  needs: { segments: boolean; words: boolean };
  /** Members that only some services have, by name. */
  extras: Readonly<Fields>;
  /** `provider.options`: free members by provider slug; only the serving provider gets its own. */
  options: Readonly<Record<string, unknown>>;
}

/** Members of OpenAI that others lack. */
const EXTRAS = [
  'include',
  'chunking_strategy',
  'known_speaker_names',
  'known_speaker_references',
  'keywords',
  'languages',
];

const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

export const schema: TSchema = Type.Object(
  {
    ...commonMembers,
    input_audio: Type.Object({
      data: Type.String({ minLength: 1, description: 'Base64' }),
      format: Type.String({ minLength: 1, maxLength: 32, description: 'Such as mp3, wav, flac, m4a, ogg or webm' }),
    }),
    language: optional(Type.String({ minLength: 1, maxLength: 32, description: 'ISO 639-1' })),
    prompt: optional(Type.String({ description: 'Guides style and spelling' })),
    temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
    response_format: optional(Type.Enum([...REPLY_FORMATS])),
    timestamp_granularities: optional(Type.Array(Type.Enum([...GRANULARITIES]), { maxItems: 2 })),
    stream: optional(Type.Boolean()),
  },
  { $id: 'TranscriptionRequest' },
);

/** A form of OpenAI's clients. */
export const formSchema: TSchema = Type.Object(
  {
    file: Type.Unsafe({ type: 'string', format: 'binary' }),
    model: Type.String(),
  },
  { additionalProperties: true, $id: 'TranscriptionForm' },
);

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Rules that the schema cannot express. */
export function check(document: JsonDocument): void {
  checkCommon(document);
  const { data } = fieldsOf(document.structure['input_audio']);
  if (!BASE64.test(textOf(data))) throw invalidField('input_audio.data', 'must be base64, without a data URL');
  const format = textOrUndefined(document.structure['response_format']);
  if (document.structure['stream'] === true && format !== undefined && format !== 'json') {
    throw invalidField('response_format', `must be json if stream is true, not ${format}`);
  }
  const granular = listOf(document.structure['timestamp_granularities']).length > 0;
  if (granular && format !== 'verbose_json') {
    throw invalidField('timestamp_granularities', 'needs the response_format verbose_json');
  }
}

/** By `format`; any other is its own subtype. */
const TYPES: Readonly<Record<string, string>> = { mp3: 'mpeg', mpga: 'mpeg', m4a: 'mp4', oga: 'ogg', opus: 'ogg' };
/** File extensions by the subtype of sniffed types, since services look at the name. */
const EXTENSIONS: Readonly<Record<string, string>> = { mpeg: 'mp3', quicktime: 'mp4', 'x-wav': 'wav' };

export function decode(document: JsonDocument, translates: boolean): TranscriptionRequest {
  const { data, format } = fieldsOf(document.member('input_audio'));
  const audio = Buffer.from(textOf(data), 'base64');
  const stated = textOf(format)
    .toLowerCase()
    .replace(/[^a-z0-9.+-]/g, '');
  const sniffed = sniffMediaType(audio.subarray(0, 512));
  const mediaType = sniffed?.replace(/^audio\/m4a$/, 'audio/mp4') ?? `audio/${TYPES[stated] ?? stated}`;
  const subtype = mediaType.slice(mediaType.indexOf('/') + 1);
  const extension = sniffed === undefined ? stated : (EXTENSIONS[subtype] ?? subtype);
  const replyFormat = (textOrUndefined(document.structure['response_format']) ?? 'json') as ReplyFormat;
  const granularities = listOf(document.structure['timestamp_granularities']);
  const seconds = audioSeconds(audio, mediaType);
  const language = textOrUndefined(document.member('language'));
  const prompt = textOrUndefined(document.member('prompt'));
  const { temperature } = document.structure;
  const timed = ['verbose_json', 'srt', 'vtt'].includes(replyFormat);
  return {
    ...{ audio, mediaType, filename: `audio.${extension}`, translates, replyFormat },
    ...(seconds !== undefined && { seconds }),
    ...(language !== undefined && { language }),
    ...(prompt !== undefined && prompt !== '' && { prompt }),
    ...(typeof temperature === 'number' && { temperature }),
    needs: {
      segments: timed && (granularities.length === 0 || granularities.includes('segment')),
      words: granularities.includes('word'),
    },
    extras: Object.fromEntries(
      EXTRAS.flatMap((name) => {
        const value = document.member(name);
        return value === undefined || value === null ? [] : [[name, value]];
      }),
    ),
    options: fieldsOf(fieldsOf(document.member('provider'))['options']),
  };
}

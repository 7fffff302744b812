/** The request body of `POST /audio/speech`: schema, rules, and the view that adapters read. */
import Type, { type TSchema } from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { checkCommon, commonMembers } from '../direct/body.ts';

/** Media type by format. `pcm` is 16-bit little-endian, mono, 24 kHz. */
export const AUDIO_TYPES = {
  pcm: 'audio/pcm',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
} as const;
export type AudioFormat = keyof typeof AUDIO_TYPES;

export interface SpeechRequest {
  input: string;
  /** Unicode characters of the input, which services bill. */
  characters: number;
  /** A name or id. */
  voice?: string;
  /** Absent: `pcm`, or what the service makes instead. */
  format?: AudioFormat;
  speed?: number;
  /** How to speak. */
  instructions?: string;
  /** Samples of the voice to imitate, as in the request. */
  references: readonly Fields[];
  /** `provider.options`: free members by provider slug; only the serving provider gets its own. */
  options: Readonly<Record<string, unknown>>;
}

const optional = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const MOST_REFERENCES = 16;
const SLOWEST = 0.1;

export const schema: TSchema = Type.Object(
  {
    ...commonMembers,
    input: Type.String({ minLength: 1, description: 'The text to speak' }),
    voice: optional(
      Type.Unsafe({ type: ['string', 'object'], description: 'A voice of the provider: its name or id, or {id}' }),
    ),
    response_format: optional(
      Type.Enum(Object.keys(AUDIO_TYPES) as AudioFormat[], {
        description: 'Default `pcm` (16 bit, mono, 24 kHz), or the usual format of a provider that does not make it',
      }),
    ),
    speed: optional(Type.Number({ exclusiveMinimum: 0, maximum: 10 })),
    instructions: optional(Type.String({ description: 'How to speak' })),
    input_references: optional(
      Type.Array(Type.Object({ type: Type.Enum(['input_audio', 'text']) }), {
        maxItems: MOST_REFERENCES,
        description: 'Samples of the voice to imitate',
      }),
    ),
    stream_format: optional(Type.Enum(['audio', 'sse'])),
  },
  { $id: 'SpeechRequest' },
);

/** Rules that the schema cannot express. */
export function check(document: JsonDocument): void {
  checkCommon(document);
  if (textOf(document.member('input')).trim() === '') throw invalidField('input', 'must not be blank');
  if (document.structure['stream_format'] === 'sse') {
    throw invalidField('stream_format', 'must be audio: the bytes are streamed as they arrive, without events');
  }
  const { voice, speed } = document.structure;
  // The bound of the price grows without end where the speed is almost 0.
  if (typeof speed === 'number' && speed < SLOWEST) throw invalidField('speed', `must be at least ${SLOWEST}`);
  const id = typeof voice === 'string' ? voice : fieldsOf(voice)['id'];
  if (voice !== undefined && voice !== null && (typeof id !== 'string' || id.trim() === '')) {
    throw invalidField(typeof voice === 'string' ? 'voice' : 'voice.id', 'must be the name or id of a voice');
  }
  listOf(document.structure['input_references']).forEach((item, index) => {
    const { type, text, input_audio: audio } = fieldsOf(item);
    const path = `input_references[${index}]`;
    if (type === 'text' && typeof text !== 'string') throw invalidField(`${path}.text`, 'must be a string');
    const { data } = fieldsOf(audio);
    if (type === 'input_audio' && (typeof data !== 'string' || data === '')) {
      throw invalidField(`${path}.input_audio.data`, 'must be base64');
    }
  });
}

export function decode(document: JsonDocument): SpeechRequest {
  const input = textOf(document.member('input'));
  const named = document.member('voice');
  const voice = typeof named === 'string' ? named : textOrUndefined(fieldsOf(named)['id']);
  const format = textOrUndefined(document.structure['response_format']) as AudioFormat | undefined;
  const { speed } = document.structure;
  const instructions = textOrUndefined(document.member('instructions'));
  return {
    input,
    characters: charactersOf(input),
    ...(voice !== undefined && { voice }),
    ...(format !== undefined && { format }),
    ...(typeof speed === 'number' && { speed }),
    ...(instructions !== undefined && instructions !== '' && { instructions }),
    references: listOf(document.member('input_references')).map(fieldsOf),
    options: fieldsOf(fieldsOf(document.member('provider'))['options']),
  };
}

function charactersOf(text: string): number {
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters;
}

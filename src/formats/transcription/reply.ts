/** Encodes the reply of a transcription, in each format, complete and as events. */
import Type from 'typebox';
import { stringifyJson } from '../../base/json.ts';
import type { Usage } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { type Closing, costMembers, type Stamp } from '../conversation/format.ts';
import { event } from '../direct/events.ts';
import type { TranscriptionRequest } from './request.ts';

export interface Segment extends Fields {
  id: number;
  /** Seconds. */
  start: number;
  end: number;
  text: string;
}

export interface Word extends Fields {
  word: string;
  start: number;
  end: number;
}

export interface TranscriptionAnswer {
  text: string;
  /** As the service names it. */
  language?: string;
  /** Seconds. */
  duration?: number;
  confidence?: number;
  segments?: readonly Segment[];
  words?: readonly Word[];
  /** Further members of the service, which show its text. */
  extras?: Readonly<Fields>;
  /** The text was shown to the client already, in events. */
  shown?: true;
}

export function encodeReply(
  answer: TranscriptionAnswer,
  request: TranscriptionRequest,
  _stamp: Stamp,
  { usage, cost, metadata }: Closing,
): string {
  const { text, language, duration, confidence, segments, words, extras } = answer;
  switch (request.replyFormat) {
    case 'text':
      return `${text}\n`;
    case 'srt':
      return cues(answer)
        .map(
          ({ start, end, text: cue }, index) => `${index + 1}\n${time(start, ',')} --> ${time(end, ',')}\n${cue}\n\n`,
        )
        .join('');
    case 'vtt':
      return `WEBVTT\n\n${cues(answer)
        .map(({ start, end, text: cue }) => `${time(start, '.')} --> ${time(end, '.')}\n${cue}\n\n`)
        .join('')}`;
    default: {
      const verbose = request.replyFormat === 'verbose_json';
      return stringifyJson({
        ...(verbose && { task: request.translates ? 'translate' : 'transcribe' }),
        ...(language !== undefined && { language }),
        ...(verbose && duration !== undefined && { duration }),
        text,
        ...(verbose && confidence !== undefined && { confidence }),
        ...(request.needs.segments && segments !== undefined && { segments }),
        ...(request.needs.words && words !== undefined && { words }),
        ...extras,
        ...(usage !== undefined && { usage: { ...usageView(usage), ...costMembers(cost) } }),
        ...(metadata !== undefined && { [metadata.key]: metadata.value }),
      });
    }
  }
}

/** OpenAI's two kinds of usage, by tokens or by duration. */
function usageView({ input, inputAudio, output, inputSeconds }: Usage): Fields {
  const seconds = inputSeconds !== undefined && { seconds: inputSeconds };
  if (input + output === 0) return { type: 'duration', seconds: 0, ...seconds };
  return {
    type: 'tokens',
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    ...(inputAudio !== undefined && {
      input_token_details: { audio_tokens: inputAudio, text_tokens: Math.max(0, input - inputAudio) },
    }),
    ...seconds,
  };
}

/** Without segments, one cue for all. */
function cues({
  text,
  segments,
  duration = 0,
}: TranscriptionAnswer): readonly Pick<Segment, 'start' | 'end' | 'text'>[] {
  const shown = segments ?? (text === '' ? [] : [{ start: 0, end: duration, text }]);
  // An empty line would end the cue.
  return shown.map(({ start, end, text: cue }) => ({ start, end, text: cue.trim().replace(/\s*\n\s*/g, '\n') }));
}

function time(seconds: number, point: string): string {
  const all = Math.round(seconds * 1000);
  const two = (count: number) => String(count).padStart(2, '0');
  const [whole, milliseconds] = [Math.floor(all / 1000), String(all % 1000).padStart(3, '0')];
  return `${two(Math.floor(whole / 3600))}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}${point}${milliseconds}`;
}

export function deltaEvent(delta: string): string {
  return event({ type: 'transcript.text.delta', delta });
}

/** Ends a stream; the text comes first if no event has shown it yet. */
export function doneEvents({ text, shown }: TranscriptionAnswer, { usage, cost, metadata }: Closing): string {
  const done = event({
    type: 'transcript.text.done',
    text,
    ...(usage !== undefined && { usage: { ...usageView(usage), ...costMembers(cost) } }),
    ...(metadata !== undefined && { [metadata.key]: metadata.value }),
  });
  return shown || text === '' ? done : deltaEvent(text) + done;
}

/**
 * The answer with its texts filtered. Words and segments are left out if a match spans several of them, because they
 * would show the match in pieces.
 * @param clean filters the text, and counts what it finds
 * @param recheck filters a part of it, without counting again
 */
export function screened(
  answer: TranscriptionAnswer,
  clean: (text: string) => string,
  recheck: (text: string) => string,
): TranscriptionAnswer {
  const text = clean(answer.text);
  const { words, segments, extras: _tokens, ...rest } = answer;
  if (text === answer.text) return { ...rest, ...(segments && { segments }), ...(words && { words }) };
  const cleaned = segments?.map(({ id, start, end, text: each }) => ({ id, start, end, text: recheck(each) }));
  const joined = cleaned?.map((segment) => segment.text).join('') ?? '';
  return { ...rest, text, ...(cleaned && recheck(joined) === joined && { segments: cleaned }) };
}

const Seconds = Type.Number({ minimum: 0, description: 'Seconds' });
const Count = Type.Integer({ minimum: 0 });
const open = { additionalProperties: true } as const;

/** For the OpenAPI document. */
export const TranscriptionReply = Type.Object(
  {
    text: Type.String(),
    task: Type.Optional(Type.String()),
    language: Type.Optional(Type.String()),
    duration: Type.Optional(Seconds),
    confidence: Type.Optional(Type.Number()),
    segments: Type.Optional(
      Type.Array(Type.Object({ id: Count, start: Seconds, end: Seconds, text: Type.String() }, open)),
    ),
    words: Type.Optional(Type.Array(Type.Object({ word: Type.String(), start: Seconds, end: Seconds }, open))),
    usage: Type.Optional(
      Type.Object(
        {
          input_tokens: Type.Optional(Count),
          output_tokens: Type.Optional(Count),
          total_tokens: Type.Optional(Count),
          seconds: Type.Optional(Count),
          cost: Type.Optional(Type.Number({ description: 'Absent when the model has no price' })),
        },
        open,
      ),
    ),
  },
  { ...open, $id: 'Transcription' },
);

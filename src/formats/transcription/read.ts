/** Reads transcriptions in OpenAI's format, and what several adapters share. */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, textOf, textOrUndefined } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { inputUsage, type Reply, type Step } from '../direct/index.ts';
import { malformed, readObject } from '../direct/json-reply.ts';
import type { Segment, TranscriptionAnswer, Word } from './reply.ts';
import type { TranscriptionRequest } from './request.ts';

/** Members of a reply that are shown as they are. */
const SHOWN = ['logprobs', 'languages'];

export function readTranscription(reply: Reply): Step<TranscriptionAnswer> {
  const read = readObject(reply);
  if ('failure' in read) return read;
  const { value } = read;
  const { text } = value;
  if (typeof text !== 'string') return { failure: malformed('no text') };
  const usage = usageOf(value);
  const [language, duration, confidence] = [
    textOrUndefined(value['language']),
    secondsOf(value['duration']),
    value['confidence'],
  ];
  return {
    answer: {
      text,
      ...(language !== undefined && { language }),
      ...(duration !== undefined && { duration }),
      ...(typeof confidence === 'number' && { confidence }),
      ...(Array.isArray(value['segments']) && { segments: segmentsIn(value['segments']) }),
      ...(Array.isArray(value['words']) && { words: wordsIn(value['words']) }),
      extras: Object.fromEntries(SHOWN.flatMap((name) => (name in value ? [[name, value[name]]] : []))),
    },
    ...(usage && { usage }),
  };
}

function segmentsIn(list: readonly unknown[]): Segment[] {
  return list.map((item, index) => {
    const segment = fieldsOf(item);
    const { id, start, end, text } = segment;
    return {
      ...segment,
      ...{ id: Number.isInteger(id) ? (id as number) : index, text: textOf(text) },
      ...{ start: secondsOf(start) ?? 0, end: secondsOf(end) ?? 0 },
    };
  });
}

function wordsIn(list: readonly unknown[]): Word[] {
  return list.map((item) => {
    const word = fieldsOf(item);
    return {
      ...word,
      ...{ word: textOf(word['word']), start: secondsOf(word['start']) ?? 0, end: secondsOf(word['end']) ?? 0 },
    };
  });
}

/** Tokens or seconds; undefined if the reply has neither. A duration that is not called usage is billed as it is. */
export function usageOf(value: Fields): Usage | undefined {
  const { usage } = value;
  const told = fieldsOf(usage);
  const seconds = secondsOf(told['seconds']) ?? secondsOf(value['duration']);
  const counted = isFields(usage) && ('input_tokens' in told || 'output_tokens' in told);
  if (!counted && seconds === undefined) return undefined;
  const { audio_tokens: audio } = fieldsOf(told['input_token_details']);
  return {
    ...inputUsage(countOf(told['input_tokens'])),
    output: countOf(told['output_tokens']),
    ...(audio !== undefined && { inputAudio: countOf(audio) }),
    ...(seconds !== undefined && { inputSeconds: Math.ceil(seconds) }),
  };
}

export function secondsUsage(seconds: number): Usage {
  return { ...inputUsage(0), inputSeconds: Math.ceil(seconds) };
}

/** A plausible time or duration. Some services write numbers as texts. */
export function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof seconds === 'number' && seconds >= 0 && seconds < 1e7 ? seconds : undefined;
}

/** @throws Uncarried for what only OpenAI's services have */
export function refuseExtras({ translates, prompt, extras }: TranscriptionRequest): void {
  if (translates) throw new Uncarried('model', 'the service does not translate');
  if (prompt !== undefined) throw new Uncarried('prompt', 'the service takes no prompt');
  const [extra] = Object.keys(extras);
  if (extra !== undefined) throw new Uncarried(extra, 'the service does not have it');
}

const LONGEST_SEGMENT_WORDS = 16;

/** Sentences, from words with their punctuation. */
export function segmentsOf(words: readonly Word[]): Segment[] {
  const segments: Segment[] = [];
  let open: Word[] = [];
  const close = () => {
    if (open.length === 0) return;
    const text = open.map(({ word }) => word).join(' ');
    segments.push({ id: segments.length, start: open[0]!.start, end: open.at(-1)!.end, text });
    open = [];
  };
  for (const word of words) {
    open.push(word);
    if (/[.!?…。！？]$/.test(word.word) || open.length === LONGEST_SEGMENT_WORDS) close();
  }
  close();
  return segments;
}

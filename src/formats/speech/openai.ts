/**
 * Speech at services with OpenAI's format (platform.openai.com/docs/api-reference/audio/createSpeech), each with a
 * dialect, and at gateways with the public format.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import { decodeFailure, decodeInBand } from '../chat/failure.ts';
import { countOf, type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import { type CallPlan, type DirectTarget, type EventStep, inputUsage, type ReplyEvents } from '../direct/index.ts';
import { malformed } from '../direct/json-reply.ts';
import { optionsFor } from '../direct/options.ts';
import { formatFor, readNoAudio, refuseExtras, type Spoken, speedWithin, spokenBytes } from './adapter.ts';
import type { SpeechAdapter } from './index.ts';
import type { AudioFormat, SpeechRequest } from './request.ts';

/** How a service differs from OpenAI. Absent members have the default. */
interface SpeechDialect {
  /** Formats that it supports, the default first. */
  formats?: readonly AudioFormat[];
  /** Slowest and fastest. */
  speeds?: readonly [number, number];
  /** Models that take instructions. Default: none. */
  instructed?: RegExp;
  /** Models that are billed by tokens and report their usage only in a stream of events. */
  eventful?: RegExp;
  /** Voice for requests without one. Absent: such a request goes to another endpoint. */
  voice?: string;
  /** Members of `provider.options` that are passed on. */
  options?: readonly string[];
}

const PATH = '/audio/speech';

export function openaiSpeech(dialect: SpeechDialect = {}): SpeechAdapter {
  return { start: (request, target) => start(request, target, dialect), decodeFailure };
}

function start(request: SpeechRequest, target: DirectTarget, dialect: SpeechDialect): CallPlan<Spoken> {
  const { model } = target;
  refuseExtras(request, dialect.instructed?.test(model));
  const format = formatFor(request, dialect.formats ?? ['pcm', 'mp3', 'wav', 'opus', 'aac', 'flac']);
  const [slowest, fastest] = dialect.speeds ?? [0.25, 4];
  const speed = speedWithin(request, slowest, fastest);
  const voice = request.voice ?? dialect.voice;
  if (voice === undefined) throw new Uncarried('voice', 'the service needs a voice');
  const eventful = dialect.eventful?.test(model) === true;
  const members: Fields = {
    ...optionsFor(request, target, dialect.options ?? []),
    model,
    input: request.input,
    voice,
    response_format: format,
    ...(speed !== undefined && { speed }),
    ...(request.instructions !== undefined && { instructions: request.instructions }),
    ...(eventful && { stream_format: 'sse' }),
  };
  return {
    call: { path: PATH, body: stringifyJson(members) },
    bytes: spokenBytes(request, format),
    read: readNoAudio,
    ...(eventful && { events: () => new SpeechEvents() }),
  };
}

/** Another gateway with this format: it gets the request as it came. */
export const publicSpeech: SpeechAdapter = {
  start(request, target) {
    const { input, voice, speed, instructions, references, options } = request;
    const format = request.format ?? 'pcm';
    const members = {
      model: target.model,
      input,
      response_format: format,
      ...(voice !== undefined && { voice }),
      ...(speed !== undefined && { speed }),
      ...(instructions !== undefined && { instructions }),
      ...(references.length > 0 && { input_references: references }),
      ...(Object.keys(options).length > 0 && { provider: { options } }),
      user: target.user,
    };
    return {
      call: { path: PATH, body: stringifyJson(members) },
      bytes: spokenBytes(request, format),
      read: readNoAudio,
    };
  },
  decodeFailure,
};

/** `speech.audio.delta` with base64, then `speech.audio.done` with the usage. */
class SpeechEvents implements ReplyEvents<Spoken> {
  #any = false;

  read(name: string, data: string): EventStep<Spoken> {
    let value: Fields;
    try {
      value = fieldsOf(parseJson(data));
    } catch {
      return data === '[DONE]' ? {} : { failure: malformed('an event that is not JSON', data) };
    }
    const type = textOf(value['type']) || name;
    if (type === 'speech.audio.delta') {
      const bytes = Buffer.from(textOf(value['audio']), 'base64');
      this.#any ||= bytes.length > 0;
      return { bytes };
    }
    if (type === 'speech.audio.done') {
      if (!this.#any) return { failure: { ...malformed('no audio'), kind: 'empty' } };
      const { usage } = value;
      return { ended: true, ...(isFields(usage) && { usage: usageOf(usage) }) };
    }
    const failure = decodeInBand(type, value);
    return failure === undefined ? {} : { failure };
  }
}

function usageOf(usage: Fields) {
  const output = countOf(usage['output_tokens']);
  return { ...inputUsage(countOf(usage['input_tokens'])), output, outputAudio: output };
}

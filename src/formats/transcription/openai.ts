/**
 * Transcription at services with OpenAI's format (platform.openai.com/docs/api-reference/audio/createTranscription),
 * each with a dialect.
 */
import { parseJson } from '../../base/json.ts';
import { decodeFailure, decodeInBand } from '../chat/failure.ts';
import { type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';
import { Uncarried } from '../conversation/losses.ts';
import type { CallPlan, DirectTarget, EventStep, ReplyEvents } from '../direct/index.ts';
import { malformed } from '../direct/json-reply.ts';
import { encodeMultipart } from '../direct/multipart.ts';
import { optionsFor } from '../direct/options.ts';
import type { TranscriptionAdapter } from './index.ts';
import { readTranscription, usageOf } from './read.ts';
import { deltaEvent, type TranscriptionAnswer } from './reply.ts';
import type { TranscriptionRequest } from './request.ts';

/** How a service differs from OpenAI. Absent members have the default. */
interface TranscriptionDialect {
  /** Models that write text only, without times. Default: none. */
  plain?: RegExp;
  /** Models that stream. Default: none. */
  streams?: RegExp;
  /** The duration is only in the detailed reply. */
  verbose?: true;
  /** It has the further members of OpenAI. */
  extras?: true;
  /** Members of `provider.options` that are passed on. */
  options?: readonly string[];
}

export function openaiTranscription(dialect: TranscriptionDialect = {}): TranscriptionAdapter {
  return { start: (request, target) => start(request, target, dialect), decodeFailure };
}

function start(
  request: TranscriptionRequest,
  target: DirectTarget,
  dialect: TranscriptionDialect,
): CallPlan<TranscriptionAnswer> {
  const { audio, mediaType, filename, translates, language, prompt, temperature, needs, extras } = request;
  const plain = dialect.plain?.test(target.model) === true;
  const timed = needs.segments || needs.words;
  if (plain && timed) throw new Uncarried('response_format', 'the model writes no times');
  if (plain && translates) throw new Uncarried('model', 'the model does not translate');
  const [extra] = Object.keys(extras);
  if (dialect.extras !== true && extra !== undefined) throw new Uncarried(extra, 'the service does not have it');
  const streams = target.stream && dialect.streams?.test(target.model) === true;
  const detailed = !plain && (timed || dialect.verbose === true);
  const granularities = [...(needs.segments ? ['segment'] : []), ...(needs.words ? ['word'] : [])];
  const fields = {
    ...textsOf({ ...extras, ...optionsFor(request, target, dialect.options ?? []) }),
    model: target.model,
    response_format: detailed ? 'verbose_json' : 'json',
    ...(language !== undefined && !translates && { language }),
    ...(prompt !== undefined && { prompt }),
    ...(temperature !== undefined && { temperature: String(temperature) }),
    ...(timed && !translates && { 'timestamp_granularities[]': granularities }),
    ...(streams && { stream: 'true' }),
  };
  const { contentType, body } = encodeMultipart(fields, [{ name: 'file', filename, mediaType, bytes: audio }]);
  return {
    call: { path: translates ? '/audio/translations' : '/audio/transcriptions', contentType, body },
    read: readTranscription,
    ...(streams && { events: () => new TranscriptionEvents() }),
  };
}

/** As fields of a form: lists repeat, and each setting of an object is a field, as SDKs send them. */
function textsOf(members: Fields): Record<string, string | string[]> {
  const text = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]): [string, string | string[]][] => {
      if (Array.isArray(value)) return [[`${name}[]`, value.map(text)]];
      if (!isFields(value)) return [[name, text(value)]];
      return Object.entries(value).map(([setting, each]) => [`${name}[${setting}]`, text(each)]);
    }),
  );
}

/** `transcript.text.delta`, then `transcript.text.done` with the whole text and the usage. */
class TranscriptionEvents implements ReplyEvents<TranscriptionAnswer> {
  read(name: string, data: string): EventStep<TranscriptionAnswer> {
    let value: Fields;
    try {
      value = fieldsOf(parseJson(data));
    } catch {
      return data === '[DONE]' ? {} : { failure: malformed('an event that is not JSON', data) };
    }
    const type = textOf(value['type']) || name;
    if (type === 'transcript.text.delta') {
      const delta = textOf(value['delta']);
      return delta === '' ? {} : { text: deltaEvent(delta) };
    }
    if (type === 'transcript.text.done') {
      const usage = usageOf(value);
      return { answer: { text: textOf(value['text']), shown: true }, ...(usage && { usage }) };
    }
    const failure = decodeInBand(type, value);
    return failure === undefined ? {} : { failure };
  }
}

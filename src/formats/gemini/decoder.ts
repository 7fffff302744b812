/**
 * A streamed answer of Gemini's `streamGenerateContent`, event by event. The form has no end marker: a finish reason (or
 * a blocked prompt) followed by the close of the connection is the end, so both are told at the close.
 */
import type { Finish, FinishReason, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { FailureKind } from '../conversation/failure.ts';
import { countOf, type Fields, fieldsOf, isFields, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { CandidateDecoder } from './candidate.ts';

const FINISH: Record<string, FinishReason> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  LANGUAGE: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
  OTHER: 'error',
  MALFORMED_FUNCTION_CALL: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
};

const KIND_BY_CODE: Record<number, FailureKind> = {
  400: 'invalid_request',
  401: 'auth',
  403: 'permission',
  404: 'not_found',
  429: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
};

export class GeminiDecoder implements TurnDecoder {
  private started = false;
  private over = false;
  private blocked: string | undefined;
  private readonly candidates: CandidateDecoder[] = [];

  read(_name: string, data: string, value: unknown): TurnEvent[] {
    if (this.over || data === '') return [];
    if (!isFields(value)) return this.fail('malformed', null, 'an event of the stream is not a JSON object');
    if (isFields(value['error'])) return this.readError(value['error']);
    const events: TurnEvent[] = this.started ? [] : [this.readHead(value)];
    for (const entry of listOf(value['candidates'])) {
      const candidate = fieldsOf(entry);
      const index = countOf(candidate['index']);
      this.candidates[index] ??= new CandidateDecoder(index, textOrUndefined(value['responseId']) ?? '');
      events.push(...this.candidates[index].read(candidate));
    }
    const feedback = value['promptFeedback'];
    if (isFields(feedback) && listOf(value['candidates']).length === 0) {
      this.blocked = textOrUndefined(feedback['blockReason']) ?? 'BLOCKED';
    }
    const usage = decodeUsage(value['usageMetadata']);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    return events;
  }

  close(): TurnEvent[] {
    if (this.over) return [];
    const unfinished = this.candidates.some((candidate) => candidate.finishReason === undefined);
    if (this.candidates.length === 0 ? this.blocked === undefined : unfinished && this.blocked === undefined) {
      return this.fail('cut', null, 'the stream ended without a finish reason');
    }
    this.over = true;
    const events = this.candidates.flatMap((candidate) => [
      ...candidate.close(),
      { type: 'finish' as const, choice: candidate.index, finish: this.finishOf(candidate) },
    ]);
    if (events.length === 0) {
      const native = this.blocked ?? null;
      events.push({ type: 'finish', choice: 0, finish: { unified: 'content_filter', native } });
    }
    return [...events, { type: 'end' }];
  }

  private finishOf(candidate: CandidateDecoder): Finish {
    const native = candidate.finishReason;
    if (native === undefined) return { unified: 'content_filter', native: this.blocked ?? null };
    const unified = FINISH[native] ?? 'stop';
    return { unified: unified === 'stop' && candidate.calls > 0 ? 'tool_calls' : unified, native };
  }

  private readHead(value: Fields): TurnEvent {
    this.started = true;
    return {
      type: 'start',
      id: textOrUndefined(value['responseId']),
      model: textOrUndefined(value['modelVersion']),
      serviceTier: textOrUndefined(fieldsOf(value['usageMetadata'])['serviceTier']),
    };
  }

  private readError(error: Fields): TurnEvent[] {
    const code = typeof error['code'] === 'number' ? error['code'] : 500;
    const message = textOrUndefined(error['message']) ?? 'the provider failed';
    const status = textOrUndefined(error['status']) ?? null;
    this.over = true;
    return [
      {
        type: 'failure',
        failure: { kind: KIND_BY_CODE[code] ?? 'server', status: code, message, code: status, raw: { error } },
      },
    ];
  }

  private fail(kind: FailureKind, status: number | null, message: string): TurnEvent[] {
    this.over = true;
    return [{ type: 'failure', failure: { kind, status, message } }];
  }
}

/**
 * Prompt tokens include cached ones; what the server's own tools read is read too. Thoughts are counted beside the
 * candidates. Undefined for a record that has no prompt count yet.
 */
function decodeUsage(value: unknown): Usage | undefined {
  if (!isFields(value) || typeof value['promptTokenCount'] !== 'number') return undefined;
  const cacheRead = countOf(value['cachedContentTokenCount']);
  const reasoning = countOf(value['thoughtsTokenCount']);
  const usage: Usage = {
    input: Math.max(countOf(value['promptTokenCount']) + countOf(value['toolUsePromptTokenCount']) - cacheRead, 0),
    cacheRead,
    cacheWrite5m: 0,
    cacheWrite1h: 0,
    output: countOf(value['candidatesTokenCount']) + reasoning,
    reasoning,
    native: { origin: 'gemini', value },
  };
  const media = { inputImage: 'IMAGE', inputAudio: 'AUDIO' } as const;
  for (const [name, modality] of Object.entries(media)) {
    const tokens = modalityTokens(value['promptTokensDetails'], modality);
    if (tokens > 0) usage[name as keyof typeof media] = tokens;
  }
  const images = modalityTokens(value['candidatesTokensDetails'], 'IMAGE');
  if (images > 0) usage.outputImage = images;
  const sound = modalityTokens(value['candidatesTokensDetails'], 'AUDIO');
  if (sound > 0) usage.outputAudio = sound;
  return usage;
}

function modalityTokens(details: unknown, modality: string): number {
  const entry = listOf(details)
    .map(fieldsOf)
    .find((detail) => detail['modality'] === modality);
  return countOf(entry?.['tokenCount']);
}

/**
 * Text completions at services that still offer the operation, for what a conversation cannot express (suffix, several
 * prompts, token ids, best-of, log probabilities of the prompt). Bodies and answers are relayed; only the gateway's own
 * members are replaced.
 */
import { invalidField } from '../../base/errors.ts';
import { type JsonDocument, scanMembers, stringifyJson } from '../../base/json.ts';
import { patchMembers } from '../../base/json-edits.ts';
import { encodeFailure } from '../chat/encode-failure.ts';
import { encodeUsage } from '../chat/usage.ts';
import { type Fields, listOf, textOf } from '../conversation/fields.ts';
import type { Closing, Stamp } from '../conversation/format.ts';
import { askedOf, loggedPrompt } from '../direct/body.ts';
import { type Adapter, type DirectFormat, estimatedTokens, inputUsage } from '../direct/index.ts';
import { textsWith } from '../texts/index.ts';
import { DEFAULT_MAX_TOKENS, schema } from './schema.ts';

const PROMPT_OVERHEAD_TOKENS = 16;

export interface CompletionRequest {
  document: JsonDocument;
  prompts: number;
  /** The prompt texts; '' for token ids. */
  texts: readonly string[];
  suffix: string;
  echo: boolean;
  bestOf: number;
  tokenIds: boolean;
  /** Number of answers generated, including those that best-of discards. */
  written: number;
  maxTokens: number;
}

/** JSON of the complete answer in the completion format. Unused for streams. */
export interface CompletionAnswer {
  json: string;
}

export interface CompletionAdapter extends Adapter<CompletionRequest, CompletionAnswer> {
  /** Supported abilities; absent: unknown. */
  readonly able?: readonly CompletionAbility[] | undefined;
  /** The same service with or without `stream_options.include_usage`. */
  withStreamUsage(streamUsage: boolean): CompletionAdapter;
}

export type CompletionAbility = 'suffix' | 'prompts' | 'tokens' | 'echo' | 'best_of';

/** Whether the request has members that a conversation cannot express. */
export function needsNative(body: Fields): boolean {
  const { prompt, suffix, best_of } = body;
  if (textOf(suffix) !== '' || (typeof best_of === 'number' && best_of > 1)) return true;
  return Array.isArray(prompt) && prompt.length > 0 && !(prompt.length === 1 && typeof prompt[0] === 'string');
}

/** Whether a conversation could serve the request only partly: without log probabilities of the prompt. */
export function prefersNative({ echo, logprobs }: Fields): boolean {
  return echo === true && typeof logprobs === 'number';
}

function check(document: JsonDocument): void {
  const { prompt, n, best_of: best, stream } = document.value;
  const kind = (item: unknown) =>
    typeof item === 'string' ? 'text' : Number.isInteger(item) ? 'token' : Array.isArray(item) ? 'tokens' : 'other';
  const kinds = new Set(listOf(prompt).map(kind));
  const inner = listOf(prompt).flatMap((item) => (Array.isArray(item) ? item : []));
  if (typeof prompt !== 'string' && (kinds.size !== 1 || kinds.has('other') || !inner.every(Number.isInteger))) {
    throw invalidField('prompt', 'must be a string, a list of strings, or token ids');
  }
  if (typeof best === 'number') {
    if (best < (typeof n === 'number' ? n : 1)) throw invalidField('best_of', 'must not be less than n');
    if (best > 1 && stream === true) throw invalidField('best_of', 'cannot be combined with stream');
  }
}

function decode(document: JsonDocument): CompletionRequest {
  const { prompt, suffix, echo, n, best_of: best, max_tokens, max_completion_tokens } = document.value;
  const many = Array.isArray(prompt) && !Number.isInteger(prompt[0]);
  const items: unknown[] = many ? prompt : [prompt];
  const answers = Math.max(typeof best === 'number' ? best : 1, typeof n === 'number' ? n : 1);
  const cap = max_completion_tokens ?? max_tokens;
  return {
    document,
    prompts: items.length,
    texts: items.map(textOf),
    suffix: textOf(suffix),
    echo: echo === true,
    bestOf: typeof best === 'number' ? best : 1,
    tokenIds: items.some((item) => Array.isArray(item)),
    written: items.length * answers,
    maxTokens: typeof cap === 'number' ? cap : DEFAULT_MAX_TOKENS,
  };
}

/** Replaces the gateway's own members. */
function own(json: string, stamp: Stamp, more: { key: string; json: string | undefined }[]): string {
  return patchMembers(json, scanMembers(json), [
    { key: 'id', json: JSON.stringify(stamp.id) },
    { key: 'object', json: '"text_completion"' },
    { key: 'model', json: JSON.stringify(stamp.model) },
    { key: 'provider', json: JSON.stringify(stamp.provider) },
    ...more,
  ]);
}

function figures({ usage, cost, metadata }: Closing): { key: string; json: string | undefined }[] {
  return [
    { key: 'usage', json: usage && stringifyJson(encodeUsage(usage, cost)) },
    ...(metadata === undefined ? [] : [{ key: metadata.key, json: JSON.stringify(metadata.value) }]),
  ];
}

/** One stream chunk without usage, which follows at the end. */
export function chunkEvent(json: string, stamp: Stamp): string {
  return `data: ${own(json, stamp, [{ key: 'usage', json: undefined }])}\n\n`;
}

export const completion: DirectFormat<CompletionRequest, CompletionAnswer> = {
  id: 'completion',
  schema,
  check,
  texts: textsWith(),
  loggedContent: (document) => loggedPrompt(document, 'prompt'),
  facts: (document) => ({
    ...askedOf(document, { images: 0, documents: 0 }, document.structure['stream'] === true),
    maxOutputTokens: decode(document).maxTokens,
  }),
  decode,
  most({ document, prompts, written, maxTokens }, { contextLength }) {
    const perAnswer = Math.min(maxTokens, contextLength ?? maxTokens);
    return {
      promptTokens: document.bytes.length + prompts * PROMPT_OVERHEAD_TOKENS,
      outputTokens: written * perAnswer,
    };
  },
  likely({ document, written, maxTokens }) {
    return { ...inputUsage(estimatedTokens(document.bytes.length)), output: written * maxTokens };
  },
  encodeReply: ({ json }, _request, stamp, closing) => own(json, stamp, figures(closing)),
  encodeFailure,
  events: {
    end(_answer, _request, stamp, closing) {
      const head = { id: stamp.id, object: 'text_completion', created: stamp.created, choices: [] };
      return `data: ${own(JSON.stringify(head), stamp, figures(closing))}\n\ndata: [DONE]\n\n`;
    },
    failure: (error) => `data: ${JSON.stringify(encodeFailure(error, { generationId: null }))}\n\n`,
  },
};

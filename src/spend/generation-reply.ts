/** A row as GET /generation shows it, and the schema of the reply. */
import { type TSchema, Type } from 'typebox';
import { nullable } from '../http/contract.ts';
import type { Member } from './column.ts';
import { type Generation, MEMBERS } from './generation.ts';

const COUNT_OR_NULL = nullable(Type.Integer({ minimum: 0 }));

/** Members of the reply that are computed, or are a second name. */
const COMPUTED: Record<string, { schema: TSchema; of(row: Generation): unknown }> = {
  app_id: { schema: nullable(Type.Integer()), of: () => null },
  // Client libraries read the referer under this name too.
  http_referer: { schema: nullable(Type.String()), of: ({ origin }) => (origin === '' ? null : origin) },
  native_tokens_cached: { schema: COUNT_OR_NULL, of: ({ usage }) => usage?.cacheRead ?? null },
  native_tokens_completion: { schema: COUNT_OR_NULL, of: ({ usage }) => usage?.output ?? null },
  native_tokens_completion_images: { schema: COUNT_OR_NULL, of: ({ usage }) => usage?.outputImage ?? null },
  native_tokens_prompt: { schema: COUNT_OR_NULL, of: promptTokens },
  native_tokens_reasoning: { schema: COUNT_OR_NULL, of: ({ usage }) => usage?.reasoning ?? null },
  num_fetches: { schema: COUNT_OR_NULL, of: ({ media, usage }) => media.fetches ?? usage?.webFetches ?? null },
  num_input_audio_prompt: { schema: COUNT_OR_NULL, of: ({ media }) => media.promptAudio ?? null },
  num_media_completion: { schema: COUNT_OR_NULL, of: ({ media }) => media.completionMedia ?? null },
  num_media_prompt: { schema: COUNT_OR_NULL, of: ({ media }) => media.promptMedia ?? null },
  num_search_results: { schema: COUNT_OR_NULL, of: ({ media }) => media.searchResults ?? null },
  tokens_completion: { schema: COUNT_OR_NULL, of: ({ usage }) => usage?.output ?? null },
  tokens_prompt: { schema: COUNT_OR_NULL, of: promptTokens },
};

function promptTokens({ usage }: Generation): number | null {
  return usage === null ? null : usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
}

const SHOWN = Object.entries(MEMBERS).flatMap(([name, member]: [string, Member<unknown, object>]) =>
  Object.entries(member.wire).map(([wire, schema]) => {
    const of = (row: Generation) => member.toWire(row[name as keyof Generation]);
    return [wire, { schema, of }] as const;
  }),
);

const REPLY = [...SHOWN, ...Object.entries(COMPUTED)];

/** `GenerationResponseData` in `openapi.json`. */
export function encodeGeneration(row: Generation): Record<string, unknown> {
  return Object.fromEntries(REPLY.map(([name, { of }]) => [name, of(row)]));
}

export const GenerationEnvelope = Type.Object(
  { data: Type.Object(Object.fromEntries(REPLY.map(([name, { schema }]) => [name, schema]))) },
  { $id: 'Generation' },
);

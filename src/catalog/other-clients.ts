/**
 * The catalog in the formats of vendor SDKs: Anthropic's list and model (for requests with `anthropic-version`), and
 * OpenAI's single model. Pure.
 */
import { Type } from 'typebox';
import { invalidField } from '../base/errors.ts';
import { nullable } from '../http/contract.ts';
import type { Model } from './catalog.ts';
import { type ListModelsQuery, type Row, viewRow } from './query.ts';
import { ModelSchema } from './schema.ts';
import { contextOf } from './view.ts';

export const AnthropicModelSchema = Type.Object(
  {
    type: Type.Literal('model'),
    id: Type.String(),
    display_name: Type.String(),
    created_at: Type.String({ description: 'The epoch if unknown' }),
    capabilities: Type.Null(),
    deprecated_at: Type.Null(),
    lifecycle: Type.Literal('active'),
    line: nullable(Type.String()),
    max_input_tokens: nullable(Type.Integer()),
    max_tokens: nullable(Type.Integer()),
    retires_at: Type.Null(),
  },
  { $id: 'AnthropicModel' },
);

export const AnthropicModelListSchema = Type.Object(
  {
    data: Type.Array(AnthropicModelSchema),
    has_more: Type.Boolean(),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
  },
  { $id: 'AnthropicModelList' },
);

export const OpenAiModelSchema = Type.Object(
  {
    ...ModelSchema.properties,
    object: Type.Literal('model'),
    owned_by: Type.String({ description: 'The part of the id before the slash' }),
  },
  { $id: 'OpenAiModel' },
);

const ANTHROPIC_PAGE_SIZE = 20;
const LINE = /^claude-(haiku|sonnet|opus|fable|mythos)$/;

export function viewForAnthropic(id: string, model: Model) {
  const { facts, endpoints } = model;
  return {
    type: 'model' as const,
    id,
    display_name: model.name,
    created_at: new Date((facts?.created ?? 0) * 1000).toISOString(),
    capabilities: null,
    deprecated_at: null,
    lifecycle: 'active' as const,
    line: LINE.exec(facts?.family ?? '')?.[1] ?? null,
    max_input_tokens: contextOf(model),
    max_tokens: endpoints[0]?.maxCompletionTokens ?? null,
    retires_at: null,
  };
}

/**
 * A page after `after_id` or before `before_id`, in list order.
 *
 * @throws GatewayError 400 for an id that is not listed, and for both at once
 */
export function pageForAnthropic(rows: readonly Row[], query: ListModelsQuery) {
  const { after_id, before_id, lifecycle, limit = ANTHROPIC_PAGE_SIZE } = query;
  if (after_id !== undefined && before_id !== undefined)
    throw invalidField('before_id', 'cannot be combined with after_id');
  const active = lifecycle === undefined || lifecycle.length === 0 || lifecycle.includes('active');
  const all = active ? rows : [];
  const backwards = before_id !== undefined;
  const end = before_id === undefined ? all.length : indexOfId(all, before_id, 'before_id');
  const start = backwards
    ? Math.max(0, end - limit)
    : after_id === undefined
      ? 0
      : indexOfId(all, after_id, 'after_id') + 1;
  const shown = all.slice(start, backwards ? end : start + limit);
  return {
    data: shown.map(({ id, model }) => viewForAnthropic(id, model)),
    has_more: backwards ? start > 0 : start + shown.length < all.length,
    first_id: shown[0]?.id ?? null,
    last_id: shown.at(-1)?.id ?? null,
  };
}

function indexOfId(rows: readonly Row[], id: string, field: string): number {
  const index = rows.findIndex((row) => row.id === id);
  if (index < 0) throw invalidField(field, 'is not the id of a listed model');
  return index;
}

export function viewForOpenAi(row: Row) {
  return { object: 'model' as const, owned_by: row.model.id.slice(0, row.model.id.indexOf('/')), ...viewRow(row) };
}

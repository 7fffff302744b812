/** Reads one model of a registry into the fields of the facts. Pure. */
import type { ModelFacts, Offer } from '../facts.ts';
import { priceText } from './millions.ts';

export interface Entry {
  name: string;
  family: string | null;
  created: number | null;
  knowledge: string | null;
  context: number | null;
  output: number | null;
  input: string[] | null;
  written: string[] | null;
  parameters: string[];
  reasoning: ModelFacts['reasoning'];
  /** The service has withdrawn it or restricts it. */
  retired: boolean;
  /** Undefined: not stated, or not understood. */
  pricing: NonNullable<Offer['pricing']> | 'free' | undefined;
}

/** Undefined if it is not a model. */
export function readEntry(value: unknown, upstreamId: string): Entry | undefined {
  if (!isRecord(value) || typeof value['name'] !== 'string') return undefined;
  const limit = isRecord(value['limit']) ? value['limit'] : {};
  // The registry has no modality for embeddings, and states the vector length as output tokens.
  const vectors = /embed/i.test(upstreamId);
  const modalities = isRecord(value['modalities']) ? value['modalities'] : {};
  return {
    name: value['name'].slice(0, 200),
    family: typeof value['family'] === 'string' ? value['family'] : null,
    created: dayOf(value['release_date']),
    knowledge: /^\d{4}-\d{2}(-\d{2})?$/.test(String(value['knowledge'])) ? String(value['knowledge']) : null,
    context: tokens(limit['context']),
    output: vectors ? null : tokens(limit['output']),
    input: words(modalities['input']),
    written: vectors ? ['embeddings'] : words(modalities['output']),
    parameters: parametersOf(value),
    reasoning: reasoningOf(value),
    retired: value['status'] === 'deprecated',
    pricing: pricingOf(value['cost']),
  };
}

function parametersOf(value: Record<string, unknown>): string[] {
  return [
    'max_tokens',
    ...(value['tool_call'] ? ['tools', 'tool_choice'] : []),
    ...(value['reasoning'] === true ? ['reasoning', 'include_reasoning'] : []),
    ...(value['temperature'] === true ? ['temperature'] : []),
    ...(value['structured_output'] === true ? ['response_format', 'structured_outputs'] : []),
  ];
}

const COSTS: Readonly<Record<string, string>> = {
  input: 'prompt',
  output: 'completion',
  reasoning: 'internal_reasoning',
  cache_read: 'input_cache_read',
  cache_write: 'input_cache_write',
  input_audio: 'audio',
  input_image: 'image_token',
  output_audio: 'audio_output',
};
/** Prices that may change for longer prompts. */
const OVERRIDDEN = new Set(['input', 'output', 'cache_read', 'cache_write', 'input_audio']);
/** Older registries use this member instead of `tiers`: other prices for longer prompts. */
const LEGACY_TIER = { key: 'context_over_200k', size: 200_000 };

function pricingOf(cost: unknown): Entry['pricing'] {
  if (!isRecord(cost)) return undefined;
  const { tiers, [LEGACY_TIER.key]: legacy, ...flat } = cost;
  const prices = Object.values(flat).some(isStructured) ? undefined : textsOf(flat, (key) => COSTS[key]);
  if (prices?.['prompt'] === undefined || prices['completion'] === undefined) return undefined;
  const { prompt, completion, ...rest } = prices;
  const overrides = tiers === undefined ? legacyOverrides(legacy) : overridesOf(tiers);
  if (overrides === undefined) return undefined;
  if (overrides.length > 0) return { ...rest, prompt, completion, overrides };
  return prompt === '0' && completion === '0' ? 'free' : { ...rest, prompt, completion };
}

type Overrides = NonNullable<NonNullable<Offer['pricing']>['overrides']>;

function legacyOverrides(legacy: unknown): Overrides | undefined {
  return legacy === undefined
    ? []
    : overridesOf([{ ...(legacy as object), tier: { type: 'context', size: LEGACY_TIER.size } }]);
}

/** Undefined if a tier depends on anything but the prompt length, because its price could not be applied. */
function overridesOf(tiers: unknown): Overrides | undefined {
  if (!Array.isArray(tiers)) return undefined;
  const overrides: Overrides = [];
  for (const entry of tiers) {
    if (!isRecord(entry) || !isRecord(entry['tier']) || entry['tier']['type'] !== 'context') return undefined;
    const size = tokens(entry['tier']['size']);
    const prices = textsOf(entry, (key) => (OVERRIDDEN.has(key) ? COSTS[key] : undefined));
    if (size === null || prices === undefined) return undefined;
    overrides.push({ min_prompt_tokens: size, ...prices });
  }
  return overrides;
}

/** Undefined if one of them is invalid. */
function textsOf(cost: Record<string, unknown>, nameOf: (key: string) => string | undefined) {
  const prices: Record<string, string> = {};
  for (const [key, value] of Object.entries(cost)) {
    const name = nameOf(key);
    if (name === undefined || isStructured(value)) continue;
    const text = priceText(value);
    if (text === undefined) return undefined;
    prices[name] = text;
  }
  return prices;
}

function isStructured(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** Null if the registry does not state how thinking is controlled. */
function reasoningOf({ reasoning, reasoning_options: options }: Record<string, unknown>): ModelFacts['reasoning'] {
  if (reasoning !== true || !Array.isArray(options)) return null;
  const known = options.filter(isRecord);
  const efforts = known.flatMap(({ type, values }) => (type === 'effort' && Array.isArray(values) ? values : []));
  const words = efforts.filter((value): value is string => typeof value === 'string');
  const optional = words.includes('none') || known.some(({ type }) => type === 'toggle');
  return { mandatory: !optional, supported_efforts: words.length === 0 ? null : words };
}

function tokens(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** The registry's `pdf` is `file` here. */
function words(value: unknown): string[] | null {
  if (!Array.isArray(value) || !value.every((word) => typeof word === 'string')) return null;
  return [...new Set(value.map((word) => (word === 'pdf' ? 'file' : word)))];
}

/** Unix seconds of a full date; a month alone is not enough. */
function dayOf(value: unknown): number | null {
  if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(value)) return null;
  const ms = Date.parse(`${value}T00:00:00Z`);
  return Number.isNaN(ms) || ms <= 0 ? null : ms / 1000;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

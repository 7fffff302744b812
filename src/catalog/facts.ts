/**
 * Facts about models independent of any configuration: a file of rows, each with source and date. One is shipped with
 * the package (`snapshot/`); a newer one may be in the data folder (`refresh/`). Unknown values are null; a price is
 * present only if its source states it.
 */
import { type Static, Type } from 'typebox';
import { OVERRIDE_PRICE_NAMES, PRICE_NAMES, type PriceOverride, type Prices, type Pricing } from '../base/config.ts';
import { parsePrice } from '../base/money.ts';
import { closed, nullable } from '../http/contract.ts';

const Text = (maxLength = 300) => Type.String({ minLength: 1, maxLength });
const Price = Type.String({ pattern: '^\\d{1,12}(\\.\\d{1,18})?$' });
const Day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' });
const Tokens = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const Words = Type.Array(Type.String({ pattern: '^[a-z0-9_]{1,64}$' }), { maxItems: 100 });
/** As in requests: no spaces, no control characters. */
const Name = Type.String({ pattern: '^[A-Za-z0-9~._:@+/-]{1,330}$' });
const Id = Type.String({ pattern: '^[A-Za-z0-9._-]{1,128}/[A-Za-z0-9._:@+/-]{1,200}$' });

const prices = (names: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.keys(names).map((name) => [name, Type.Optional(Price)]));

/** Prices by their wire names (`pricing` of a model), in USD. */
const PricingFactsSchema = Type.Object(
  {
    ...prices(PRICE_NAMES),
    prompt: Price,
    completion: Price,
    /** Price per output image, in general or by quality or size, as in `gatehouse.yaml`. */
    output_images: Type.Optional(
      Type.Array(
        Type.Object(
          {
            price: Price,
            per: Type.Optional(Type.Enum(['image', 'megapixel'])),
            variant: Type.Optional(Type.String({ pattern: '^\\S+(?: \\S+)*$' })),
          },
          closed,
        ),
        { minItems: 1, maxItems: 64 },
      ),
    ),
    overrides: Type.Optional(
      Type.Array(
        Type.Object(
          { min_prompt_tokens: Type.Integer({ minimum: 0 }), ...prices(OVERRIDE_PRICE_NAMES) },
          { additionalProperties: false },
        ),
        { maxItems: 16 },
      ),
    ),
  },
  closed,
);

const OfferSchema = Type.Object(
  {
    provider: Text(64),
    upstream_id: Name,
    pricing: nullable(PricingFactsSchema),
    context_length: Type.Optional(Tokens),
    max_completion_tokens: Type.Optional(Tokens),
    source: Text(),
    date: Day,
  },
  closed,
);

export const ModelFactsSchema = Type.Object(
  {
    id: Id,
    canonical_slug: Id,
    name: Text(200),
    family: nullable(Type.String({ pattern: '^[a-z0-9.-]{1,64}$' })),
    created: nullable(Type.Integer({ minimum: 1 })),
    knowledge_cutoff: nullable(Type.String({ pattern: '^\\d{4}-\\d{2}(-\\d{2})?$' })),
    hugging_face_id: nullable(Text(200)),
    context_length: nullable(Tokens),
    max_completion_tokens: nullable(Tokens),
    input_modalities: nullable(Words),
    /** The source may not list all inputs. */
    inputs_partial: Type.Optional(Type.Literal(true)),
    output_modalities: nullable(Words),
    /** Parameters that a source names. The list may be incomplete, so a missing one is unknown. */
    supported_parameters: nullable(Words),
    tokenizer: nullable(Text(32)),
    reasoning: nullable(Type.Object({ mandatory: Type.Boolean(), supported_efforts: nullable(Words) }, closed)),
    aliases: Type.Array(Name, { maxItems: 50 }),
    dated: Type.Array(Name, { maxItems: 50 }),
    offers: Type.Array(OfferSchema, { maxItems: 100 }),
    source: Text(600),
    date: Day,
  },
  closed,
);

export const FactsFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    date: Day,
    source: Text(),
    /** Rows of one family are adjacent, newest first. */
    models: Type.Array(ModelFactsSchema, { maxItems: 20_000 }),
    /** Models that providers listed at the last refresh, by provider id. */
    listed: Type.Optional(Type.Record(Type.String(), Type.Array(Name, { maxItems: 5_000 }))),
  },
  closed,
);

/**
 * One model. `aliases` are other names for it. `dated` are the vendor's names of this exact version, which stay valid
 * when the plain name moves on, so they are sent upstream unchanged.
 */
export type ModelFacts = Static<typeof ModelFactsSchema>;
/** A provider kind's offering of a model, at its public base URL. */
export type Offer = Static<typeof OfferSchema>;
export type FactsFile = Static<typeof FactsFileSchema>;

/** The facts as `buildCatalog` takes them. */
export interface Facts {
  /** Date of the file, `YYYY-MM-DD`. */
  date: string;
  models: readonly ModelFacts[];
  listed: Readonly<Record<string, readonly string[]>>;
}

export function factsFrom({ date, models, listed = {} }: FactsFile): Facts {
  return Object.freeze({ date, models, listed });
}

/** @throws RangeError for an invalid price */
export function pricingFrom(facts: NonNullable<Offer['pricing']>): Pricing {
  const { overrides, prompt, completion, output_images, ...rest } = facts;
  return Object.freeze({
    ...pricesFrom(rest, PRICE_NAMES),
    prompt: parsePrice(prompt),
    completion: parsePrice(completion),
    ...(overrides && { overrides: Object.freeze(overrides.map(overrideFrom)) }),
    ...(output_images && {
      outputImages: Object.freeze(
        output_images.map(({ price, per = 'image', variant }) => ({
          per,
          price: parsePrice(price),
          variant: variant?.split(' ') ?? [],
        })),
      ),
    }),
  });
}

function overrideFrom({ min_prompt_tokens, ...texts }: { min_prompt_tokens: number }): PriceOverride {
  return Object.freeze({
    minPromptTokens: min_prompt_tokens,
    prices: Object.freeze(pricesFrom(texts, OVERRIDE_PRICE_NAMES)),
  });
}

function pricesFrom(texts: object, names: Readonly<Record<string, keyof Prices>>): Prices {
  const prices: Prices = {};
  for (const [name, text] of Object.entries(texts)) {
    const own = names[name];
    if (own !== undefined && typeof text === 'string') prices[own] = parsePrice(text);
  }
  return prices;
}

/**
 * What is known of models apart from any configuration: a file of rows, each with its source and its date. One comes with
 * the package (`snapshot/`), a newer one may stand in the data folder (`refresh/`). What a row does not know is null; a
 * price stands there only if its source stated it.
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

/** By the names of the wire (wire/models.md, PublicPricing), in USD. */
const PricingFactsSchema = Type.Object(
  {
    ...prices(PRICE_NAMES),
    prompt: Price,
    completion: Price,
    /** What one picture of the answer costs, for all or for a quality or size of it, as `gatehouse.yaml` states it. */
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
    /** The source says nothing of what is not among them. */
    inputs_partial: Type.Optional(Type.Literal(true)),
    output_modalities: nullable(Words),
    /** Those that a source names; it may leave others out, so one that is missing is not known. */
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
    /** Rows of one family stand together, the newest first. */
    models: Type.Array(ModelFactsSchema, { maxItems: 20_000 }),
    /** What providers said they have when they were last asked, by the provider's id. */
    listed: Type.Optional(Type.Record(Type.String(), Type.Array(Name, { maxItems: 5_000 }))),
  },
  closed,
);

/**
 * One model. `aliases` are other names of it; `dated` are its vendor's names of this very version, which a vendor keeps
 * when the plain name moves on, so they are sent as they are.
 */
export type ModelFacts = Static<typeof ModelFactsSchema>;
/** One kind of provider's offering of a model, at its public address. */
export type Offer = Static<typeof OfferSchema>;
export type FactsFile = Static<typeof FactsFileSchema>;

/** The facts as `buildCatalog` takes them. */
export interface Facts {
  /** Of the file, `YYYY-MM-DD`. */
  date: string;
  models: readonly ModelFacts[];
  listed: Readonly<Record<string, readonly string[]>>;
}

export function factsFrom({ date, models, listed = {} }: FactsFile): Facts {
  return Object.freeze({ date, models, listed });
}

/** @throws RangeError for a text that is no price */
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

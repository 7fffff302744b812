/**
 * Computes costs from token counts. Every token belongs to exactly one price class (input: fresh, cache read or cache
 * write; output: reasoning, audio, image or text). Sums are exact integers of 10^-18 USD, and the total is rounded
 * once.
 */
import type { ImagePrice, Prices, Pricing } from '../base/config.ts';
import { type Nano, nanoFromPrice, type Price } from '../base/money.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import { callsOf, type UsageCall } from '../formats/conversation/usage.ts';

/** The three parts add up to the total, to the nano-dollar. */
export interface CostBreakdown {
  promptNano: Nano;
  completionNano: Nano;
  /** Charges per request, image and search. */
  feesNano: Nano;
  totalNano: Nano;
}

/**
 * The cost of a usage. A class without its own price has that of its side: cache reads and writes, input audio and
 * input images cost as much as the prompt; reasoning, output audio and output images as much as the completion; long
 * cache writes as much as short ones.
 *
 * @param inputImages images in the prompt, for models that charge per image
 * @param words quality and size of the requested images, for prices that depend on them
 * @param pricingOf pricing of another model that the upstream called in this reply; undefined: unknown, so `pricing`
 * applies
 */
export function priceOf(
  usage: Usage,
  pricing: Pricing,
  inputImages = 0,
  words: readonly string[] = [],
  pricingOf: PricingOf = unknownPricing,
): CostBreakdown {
  const exact = exactPriceOf(chargedFor(usage), pricesFor(usage, pricing), inputImages);
  if (usage.calls !== undefined) Object.assign(exact, exactPriceOfCalls(callsOf(usage), pricing, pricingOf));
  exact.completion += imagesPriceOf(usage, pricing.outputImages, words);
  if (usage.imageCalls !== undefined) {
    const { prompt, completion } = exactPriceOfCalls(usage.imageCalls, pricing, pricingOf);
    exact.fees += prompt + completion;
  }
  // Rounding running sums instead of parts keeps parts and total consistent without rounding twice.
  const promptNano = nanoFromPrice(exact.prompt);
  const answeredNano = nanoFromPrice(exact.prompt + exact.completion);
  const totalNano = nanoFromPrice(exact.prompt + exact.completion + exact.fees);
  return {
    promptNano,
    completionNano: answeredNano - promptNano,
    feesNano: totalNano - answeredNano,
    totalNano,
  };
}

export type PricingOf = (model: string) => Pricing | undefined;

const unknownPricing: PricingOf = () => undefined;

/** Fees apply to the whole reply, not per call. A model without a known price has that of the answering model. */
function exactPriceOfCalls(calls: readonly UsageCall[], pricing: Pricing, pricingOf: PricingOf) {
  const sum = { prompt: 0n, completion: 0n };
  for (const { model, usage } of calls) {
    const own = model === undefined ? pricing : (pricingOf(model) ?? pricing);
    const { prompt, completion } = exactPriceOf(chargedFor(usage), pricesFor(usage, own), 0);
    sum.prompt += prompt;
    sum.completion += completion;
  }
  return sum;
}

/** The highest price of one token of each side, for any class and prompt length; used for upper bounds. */
export interface Ceiling {
  prompt: Price;
  completion: Price;
  request: Price;
  /** Per image of the prompt, in addition to its tokens. */
  image: Price;
  webSearch: Price;
  /** Per output image, in addition to its tokens, and per started megapixel. */
  outputImage: Price;
  outputMegapixel: Price;
  inputCharacter: Price;
  inputSecond: Price;
  outputSecond: Price;
}

export function ceilingOf(pricing: Pricing): Ceiling {
  const all: Prices[] = [pricing, ...(pricing.overrides ?? []).map(({ prices }) => prices)];
  const highest = (...names: (keyof Prices)[]) => {
    let most = 0n;
    for (const prices of all) for (const name of names) if ((prices[name] ?? 0n) > most) most = prices[name]!;
    return most;
  };
  return {
    prompt: highest('prompt', 'inputCacheRead', 'inputCacheWrite', 'inputCacheWrite1h', 'audio', 'imageToken'),
    completion: highest('completion', 'internalReasoning', 'audioOutput', 'imageOutput'),
    request: highest('request'),
    image: highest('image'),
    webSearch: highest('webSearch'),
    outputImage: highestOf(pricing.outputImages, 'image'),
    outputMegapixel: highestOf(pricing.outputImages, 'megapixel'),
    inputCharacter: highest('inputCharacter'),
    inputSecond: highest('inputSecond'),
    outputSecond: highest('outputSecond'),
  };
}

function highestOf(prices: readonly ImagePrice[] | undefined, per: ImagePrice['per']): Price {
  return (prices ?? []).reduce((most, each) => (each.per === per && each.price > most ? each.price : most), 0n);
}

/** False if the price is unknown. */
export function costsNothing(pricing: Pricing | null): boolean {
  return pricing !== null && Object.values(ceilingOf(pricing)).every((price) => price === 0n);
}

/**
 * Cost of output images charged per image or by area. The most specific variant that matches the request applies. If
 * none matches, the highest price does, because the reservation assumes no more.
 */
function imagesPriceOf(usage: Usage, prices: readonly ImagePrice[] | undefined, words: readonly string[]): bigint {
  if (prices === undefined || prices.length === 0) return 0n;
  const fitting = prices.filter(({ variant }) => variant.every((word) => words.includes(word)));
  const candidates = fitting.length > 0 ? fitting : prices;
  const chosen = candidates.reduce((best, each) => (isBetter(each, best, fitting.length > 0) ? each : best));
  return times((chosen.per === 'image' ? usage.outputImages : usage.outputMegapixels) ?? 0, chosen.price);
}

function isBetter(one: ImagePrice, other: ImagePrice, byVariant: boolean): boolean {
  return byVariant ? one.variant.length > other.variant.length : one.price > other.price;
}

/** Token counts per class; the classes of a side sum to the side. Exported for tests. */
export function classesOf(usage: Usage) {
  // Upstreams report media counts loosely, so they are limited to what is there.
  const audio = part(usage.inputAudio, usage.input);
  const image = part(usage.inputImage, usage.input - audio);
  const reasoning = part(usage.reasoning, usage.output);
  const audioOutput = part(usage.outputAudio, usage.output - reasoning);
  const imageOutput = part(usage.outputImage, usage.output - reasoning - audioOutput);
  return {
    prompt: {
      text: usage.input - audio - image,
      audio,
      image,
      cacheRead: usage.cacheRead,
      cacheWrite5m: usage.cacheWrite5m,
      cacheWrite1h: usage.cacheWrite1h,
    },
    completion: {
      text: usage.output - reasoning - audioOutput - imageOutput,
      reasoning,
      audio: audioOutput,
      image: imageOutput,
    },
  };
}

/** The counts to charge. A vendor's own billed counts replace the others; they have no classes within a side. */
function chargedFor(usage: Usage): Usage {
  if (usage.billed === undefined) return usage;
  return { ...usage, ...usage.billed, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, reasoning: 0 };
}

function part(count: number | undefined, whole: number): number {
  return Math.min(count ?? 0, whole);
}

/** Every override whose threshold the prompt exceeds replaces the prices that it names; the highest threshold wins. */
function pricesFor(usage: Usage, pricing: Pricing): Prices & Pick<Pricing, 'prompt' | 'completion'> {
  if (pricing.overrides === undefined) return pricing;
  const promptTokens = usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
  const reached = pricing.overrides.filter(({ minPromptTokens }) => promptTokens > minPromptTokens);
  const ordered = reached.toSorted((a, b) => a.minPromptTokens - b.minPromptTokens);
  return Object.assign({}, pricing, ...ordered.map(({ prices }) => prices));
}

function exactPriceOf(usage: Usage, prices: ReturnType<typeof pricesFor>, inputImages: number) {
  const { prompt, completion } = classesOf(usage);
  const cacheWrite = prices.inputCacheWrite ?? prices.prompt;
  return {
    prompt:
      times(prompt.text, prices.prompt) +
      times(prompt.audio, prices.audio ?? prices.prompt) +
      times(prompt.image, prices.imageToken ?? prices.prompt) +
      times(prompt.cacheRead, prices.inputCacheRead ?? prices.prompt) +
      times(prompt.cacheWrite5m, cacheWrite) +
      times(prompt.cacheWrite1h, prices.inputCacheWrite1h ?? cacheWrite) +
      times(usage.inputCharacters ?? 0, prices.inputCharacter ?? 0n) +
      times(usage.inputSeconds ?? 0, prices.inputSecond ?? 0n),
    completion:
      times(completion.text, prices.completion) +
      times(completion.reasoning, prices.internalReasoning ?? prices.completion) +
      times(completion.audio, prices.audioOutput ?? prices.completion) +
      times(completion.image, prices.imageOutput ?? prices.completion) +
      times(usage.outputSeconds ?? 0, prices.outputSecond ?? 0n),
    fees:
      times(usage.searchUnits ?? 1, prices.request ?? 0n) +
      times(inputImages, prices.image ?? 0n) +
      times(usage.webSearches ?? 0, prices.webSearch ?? 0n),
  };
}

function times(count: number, price: Price): bigint {
  return count === 0 ? 0n : BigInt(count) * price;
}

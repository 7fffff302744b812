/**
 * Sizes of pictures (spec.md, "POST /images"): a ratio, a tier of resolution, or explicit pixels, which win. Services take
 * a subset each; ratio and tier are clamped to it, explicit pixels are kept or the service is not asked.
 */

export const RATIOS = [
  ...[
    '1:1',
    '1:2',
    '1:4',
    '1:8',
    '2:1',
    '2:3',
    '2.35:1',
    '3:2',
    '3:4',
    '4:1',
    '4:3',
    '4:5',
    '5:2',
    '5:4',
    '5:7',
    '7:5',
  ],
  ...['8:1', '9:16', '16:9', '9:19.5', '19.5:9', '9:20', '20:9', '9:21', '21:9'],
] as const;

/** Side of a square of the tier, in pixels. */
const TIERS = { '512': 512, '768': 768, '1K': 1024, '1.5K': 1536, '2K': 2048, '4K': 4096 } as const;
export type Tier = keyof typeof TIERS;
export const TIER_NAMES = Object.keys(TIERS) as Tier[];

export interface Pixels {
  width: number;
  height: number;
}

/** What a request says of the size; nothing is the service's own choice. */
export interface Size {
  pixels?: Pixels;
  ratio?: string;
  tier?: Tier;
}

export function tierOf(text: string): Tier | undefined {
  return TIER_NAMES.find((tier) => tier.toLowerCase() === text.toLowerCase());
}

/** `1024x768`, from 16 to 16384 each way. */
export function pixelsOf(text: string): Pixels | undefined {
  const match = /^(\d{2,5})x(\d{2,5})$/i.exec(text);
  if (!match) return undefined;
  const [width, height] = [Number(match[1]), Number(match[2])];
  const fits = (side: number) => side >= 16 && side <= 16_384;
  return fits(width) && fits(height) ? { width, height } : undefined;
}

function quotient(ratio: string): number {
  const [width = 1, height = 1] = ratio.split(':').map(Number);
  return width / height;
}

/** Services round to their own steps, so that 1344x768 is their 16:9. */
const RATIO_SLACK = 0.035;

export function isOfRatio({ width, height }: Pixels, ratio: string): boolean {
  return Math.abs(Math.log(width / height / quotient(ratio))) <= RATIO_SLACK;
}

/** A tier names the short side, the long side or the area, depending on whom one asks. */
export function isOfTier({ width, height }: Pixels, tier: Tier): boolean {
  const side = TIERS[tier];
  const slack = 2 ** 0.25;
  return Math.min(width, height) / slack <= side && side <= Math.max(width, height) * slack;
}

/** The ratio of `offered` that comes closest. */
export function nearestRatio(ratio: string, offered: readonly string[]): string {
  const distance = (other: string) => Math.abs(Math.log(quotient(other) / quotient(ratio)));
  return offered.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

/** The tier of `offered` that comes closest, the smaller of two. */
export function nearestTier(tier: Tier, offered: readonly Tier[]): Tier {
  const distance = (other: Tier) => Math.abs(Math.log2(TIERS[other] / TIERS[tier]));
  return offered.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

/** Ratio and tier of explicit pixels, for services that take no pixels: only a square of a tier is theirs exactly. */
export function squareOf({ width, height }: Pixels, tiers: readonly Tier[]): Size | undefined {
  const tier = width === height ? tiers.find((each) => TIERS[each] === width) : undefined;
  return tier === undefined ? undefined : { ratio: '1:1', tier };
}

/** Pixels of a size, in steps of `step`, of about the area that the tier names. */
export function pixelsFor({ pixels, ratio, tier }: Size, step: number, usual: Tier = '1K'): Pixels {
  if (pixels !== undefined) return pixels;
  const side = TIERS[tier ?? usual];
  const root = Math.sqrt(quotient(ratio ?? '1:1'));
  const snap = (length: number) => Math.max(step, Math.round(length / step) * step);
  return { width: snap(side * root), height: snap(side / root) };
}

/** An upper bound of the area, in millions of pixels, for what may be charged. */
export function mostMegapixels({ pixels, tier }: Size): number {
  if (pixels !== undefined) return (pixels.width * pixels.height) / 1e6;
  const side = TIERS[tier ?? '2K'] * 1.05;
  return (side * side) / 1e6;
}

/** Which pixels a model makes that takes them freely. */
export interface Bounds {
  /** Divides both sides. */
  step: number;
  shortest: number;
  longest: number;
  mostPixels: number;
  /** Of the longer side to the shorter one. */
  steepest: number;
}

export function isWithin(
  { width, height }: Pixels,
  { step, shortest, longest, mostPixels, steepest }: Bounds,
): boolean {
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  const stepped = width % step === 0 && height % step === 0;
  return stepped && short >= shortest && long <= longest && width * height <= mostPixels && long / short <= steepest;
}

/** The nearest size of the same ratio inside the bounds; the ratio must not be steeper than they are. */
export function within({ width, height }: Pixels, { step, shortest, longest, mostPixels }: Bounds): Pixels {
  const shrunk = Math.min(1, longest / Math.max(width, height), Math.sqrt(mostPixels / (width * height)));
  const grown = Math.max(1, shortest / Math.min(width, height));
  const snap = (side: number) => {
    const steps = (side * shrunk * grown) / step;
    return Math.max(shortest, (grown > 1 ? Math.round(steps) : Math.floor(steps)) * step);
  };
  return { width: snap(width), height: snap(height) };
}

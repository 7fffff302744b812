/**
 * Image sizes: a ratio, a resolution tier, or explicit pixels, which take precedence. Each service supports a subset:
 * ratio and tier are clamped to it, while explicit pixels are kept or exclude the service.
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

/** Side of a square image of the tier, in pixels. */
const TIERS = { '512': 512, '768': 768, '1K': 1024, '1.5K': 1536, '2K': 2048, '4K': 4096 } as const;
export type Tier = keyof typeof TIERS;
export const TIER_NAMES = Object.keys(TIERS) as Tier[];

export interface Pixels {
  width: number;
  height: number;
}

/** The requested size; absent members leave the choice to the service. */
export interface Size {
  pixels?: Pixels;
  ratio?: string;
  tier?: Tier;
}

export function tierOf(text: string): Tier | undefined {
  return TIER_NAMES.find((tier) => tier.toLowerCase() === text.toLowerCase());
}

/** `1024x768`, each side 16 to 16384. */
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

/** Services round to their own steps: 1344x768 counts as 16:9. */
const RATIO_SLACK = 0.035;

export function isOfRatio({ width, height }: Pixels, ratio: string): boolean {
  return Math.abs(Math.log(width / height / quotient(ratio))) <= RATIO_SLACK;
}

/** Services define a tier by the short side, the long side or the area, so any of them matches. */
export function isOfTier({ width, height }: Pixels, tier: Tier): boolean {
  const side = TIERS[tier];
  const slack = 2 ** 0.25;
  return Math.min(width, height) / slack <= side && side <= Math.max(width, height) * slack;
}

/** The closest ratio of `offered`. */
export function nearestRatio(ratio: string, offered: readonly string[]): string {
  const distance = (other: string) => Math.abs(Math.log(quotient(other) / quotient(ratio)));
  return offered.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

/** The closest tier of `offered`; the smaller one on a tie. */
export function nearestTier(tier: Tier, offered: readonly Tier[]): Tier {
  const distance = (other: Tier) => Math.abs(Math.log2(TIERS[other] / TIERS[tier]));
  return offered.reduce((best, other) => (distance(other) < distance(best) ? other : best));
}

/** Ratio and tier of explicit pixels, for services without pixel sizes. Only the square of a tier is exact. */
export function squareOf({ width, height }: Pixels, tiers: readonly Tier[]): Size | undefined {
  const tier = width === height ? tiers.find((each) => TIERS[each] === width) : undefined;
  return tier === undefined ? undefined : { ratio: '1:1', tier };
}

/** Pixels in steps of `step` with about the area of the tier. */
export function pixelsFor({ pixels, ratio, tier }: Size, step: number, usual: Tier = '1K'): Pixels {
  if (pixels !== undefined) return pixels;
  const side = TIERS[tier ?? usual];
  const root = Math.sqrt(quotient(ratio ?? '1:1'));
  const snap = (length: number) => Math.max(step, Math.round(length / step) * step);
  return { width: snap(side * root), height: snap(side / root) };
}

/** Upper bound of the area in megapixels, for the reservation. */
export function mostMegapixels({ pixels, tier }: Size): number {
  if (pixels !== undefined) return (pixels.width * pixels.height) / 1e6;
  const side = TIERS[tier ?? '2K'] * 1.05;
  return (side * side) / 1e6;
}

/** The pixel sizes that a model with free sizes can generate. */
export interface Bounds {
  /** Must divide both sides. */
  step: number;
  shortest: number;
  longest: number;
  mostPixels: number;
  /** Greatest ratio of the longer side to the shorter one. */
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

/** The nearest size of the same ratio within the bounds; the ratio must not exceed `steepest`. */
export function within({ width, height }: Pixels, { step, shortest, longest, mostPixels }: Bounds): Pixels {
  const shrunk = Math.min(1, longest / Math.max(width, height), Math.sqrt(mostPixels / (width * height)));
  const grown = Math.max(1, shortest / Math.min(width, height));
  const snap = (side: number) => {
    const steps = (side * shrunk * grown) / step;
    return Math.max(shortest, (grown > 1 ? Math.round(steps) : Math.floor(steps)) * step);
  };
  return { width: snap(width), height: snap(height) };
}

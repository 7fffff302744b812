/**
 * The vendors with their own members in a guardrail: the token of each in our schemas, the name that public clients
 * use, and the authors of its models.
 */
export type Vendor = 'vendor_a' | 'vendor_b' | 'vendor_c' | 'vendor_d' | 'other';

export const VENDORS: readonly { token: Exclude<Vendor, 'other'>; alias: string; authors: readonly string[] }[] = [
  { token: 'vendor_a', alias: 'anthropic', authors: ['anthropic'] },
  { token: 'vendor_b', alias: 'openai', authors: ['openai'] },
  { token: 'vendor_c', alias: 'google', authors: ['google'] },
  { token: 'vendor_d', alias: 'xai', authors: ['x-ai', 'xai'] },
];

const BY_AUTHOR = new Map(VENDORS.flatMap(({ token, authors }) => authors.map((author) => [author, token] as const)));

/** The vendor of a model, by the author in its id (`author/slug`). */
export function vendorOf(modelId: string): Vendor {
  const slash = modelId.indexOf('/');
  return BY_AUTHOR.get(modelId.slice(0, slash === -1 ? undefined : slash).toLowerCase()) ?? 'other';
}

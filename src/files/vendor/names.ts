/** The vendors whose files can be used, and the tokens that name them in our schemas, as in guardrails. */
export type Vendor = 'openai' | 'anthropic';
export type VendorName = Vendor | 'vendor_a' | 'vendor_b';

export const VENDOR_TOKENS: ReadonlyMap<VendorName, Vendor> = new Map([
  ['vendor_a', 'anthropic'],
  ['vendor_b', 'openai'],
]);

export function vendorNamed(name: VendorName): Vendor {
  return VENDOR_TOKENS.get(name) ?? (name as Vendor);
}

/** Whose model it is that a request goes to: the form is one, but what stands in its open members is each vendor's own. */

/** Prefixes of inference profiles: where requests may be served. */
const AREAS = new Set(['af', 'apac', 'au', 'ca', 'eu', 'global', 'il', 'jp', 'me', 'mx', 'sa', 'us', 'us-gov']);

/**
 * The vendor in a model id (`anthropic.claude-x`), an inference profile (`us.anthropic.claude-x`) or an ARN that ends in
 * one of them; undefined for ARNs that say nothing (application profiles, provisioned throughput, imported models).
 */
export function vendorOf(model: string): string | undefined {
  const id = model.slice(model.lastIndexOf('/') + 1);
  const [first = '', second, third] = id.split('.');
  if (second === undefined) return undefined;
  if (!AREAS.has(first)) return first;
  return third === undefined ? undefined : second;
}

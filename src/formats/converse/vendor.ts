/** The vendor of a model. Converse is one format, but its open members differ by vendor. */

/** Region prefixes of inference profiles. */
const AREAS = new Set(['af', 'apac', 'au', 'ca', 'eu', 'global', 'il', 'jp', 'me', 'mx', 'sa', 'us', 'us-gov']);

/**
 * The vendor in a model id (`anthropic.claude-x`), an inference profile (`us.anthropic.claude-x`) or an ARN that ends
 * in either; undefined for ARNs without it (application profiles, provisioned throughput, imported models).
 */
export function vendorOf(model: string): string | undefined {
  const id = model.slice(model.lastIndexOf('/') + 1);
  const [first = '', second, third] = id.split('.');
  if (second === undefined) return undefined;
  if (!AREAS.has(first)) return first;
  return third === undefined ? undefined : second;
}

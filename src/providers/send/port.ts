/** The port of an http or https URL, which names it only if it is not the scheme's own. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** The regional root through which a request arrived, by its host name (`hosts` in gatehouse.yaml). */
import type { HostSettings } from '../../base/config.ts';
import type { DataRegion } from '../../spend/index.ts';

const PORT = /:\d+$/;

/** Hosts that no list names belong to the global root. */
export function regionOf(host: string | undefined, hosts: HostSettings): DataRegion {
  if (host === undefined || (hosts.europe.length === 0 && hosts.us.length === 0)) return 'global';
  const name = host.toLowerCase().replace(PORT, '').replace(/\.$/, '');
  if (hosts.europe.includes(name)) return 'europe';
  return hosts.us.includes(name) ? 'us' : 'global';
}

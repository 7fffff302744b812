/** Where other processes of this gateway reach this one. */
import { networkInterfaces } from 'node:os';

const LOOPBACK = '127.0.0.1';

interface ListeningSettings {
  /** That the gateway listens on. */
  host: string;
  /** Null: the embedded database, whose processes are all on this machine. */
  databaseUrl: object | null;
  /** Chosen by the operator. */
  peerHost: string | null;
}

/** An address to listen on: the chosen one, that of the gateway, or the first of this machine's that others can reach. */
export function peerHost({ host, databaseUrl, peerHost: chosen }: ListeningSettings): string {
  if (chosen !== null) return chosen;
  if (databaseUrl === null) return LOOPBACK;
  if (!['0.0.0.0', '::', ''].includes(host)) return host;
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const outer = addresses.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'));
  return (outer.find(({ family }) => family === 'IPv4') ?? outer[0])?.address ?? LOOPBACK;
}

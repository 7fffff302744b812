/** Where the egress proxy listens for sandboxes on other machines. */
import { networkInterfaces } from 'node:os';
import { EGRESS_PORTS, type SandboxesSettings } from '../base/config.ts';
import type { EgressProxyOptions } from '../egress-proxy/index.ts';

/** @returns undefined if all sandboxes are on this machine */
export function remoteDoor({ driver, kubernetes }: SandboxesSettings): EgressProxyOptions['door'] {
  if (driver !== 'kubernetes' || kubernetes === null) return undefined;
  const { egressHost, egressPort: from } = kubernetes;
  return { host: egressHost ?? firstAddress(), ports: { from, to: from + EGRESS_PORTS - 1 } };
}

/** In a pod, that of the pod. */
function firstAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const outside = all.filter(({ internal, address }) => !internal && !/^(?:fe80:|169\.254\.)/i.test(address));
  const found = outside.find(({ family }) => family === 'IPv4') ?? outside[0];
  return found?.address ?? '127.0.0.1';
}

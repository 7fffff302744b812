/** The way out of containers with an allow list: the egress proxy, without secrets. */
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type Authority, createAuthority, type EgressWay } from '../egress-proxy/index.ts';
import type { SandboxNetwork } from '../sandboxes/index.ts';

/** Ports that a container may use, as far as the installation allows them. */
const PORTS = [80, 443];

interface NetworkParts {
  clock: Clock;
  log: Log;
  /** The current rules of the installation. */
  egress(): { domains: readonly string[]; ports: readonly number[] };
}

export class ContainerNetworks {
  readonly #parts: NetworkParts;
  readonly #open = new Set<EgressWay>();
  /** Signs nothing as long as there are no secrets; programs in the sandbox trust it. */
  #authority: Promise<Authority> | undefined;

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  async of(containerId: string, domains: readonly string[]): Promise<SandboxNetwork> {
    const { clock, log, egress } = this.#parts;
    this.#authority ??= createAuthority(clock);
    const authority = await this.#authority;
    this.#forgetClosed();
    return {
      certificate: authority.certificate,
      load: async (way) => {
        this.#open.add(way);
        const { domains: withinDomains, ports } = egress();
        const allowed = PORTS.filter((port) => ports.includes(port));
        return { secrets: [], domains, withinDomains, ports: allowed, authority };
      },
      onRefused: (refusal) => log.info('egress of a container refused', { container: containerId, ...refusal }),
    };
  }

  /** After the rules of the installation have changed. */
  async reload(): Promise<void> {
    this.#forgetClosed();
    await Promise.all([...this.#open].map((way) => way.reload()));
  }

  #forgetClosed(): void {
    for (const way of this.#open) if (!way.isOpen) this.#open.delete(way);
  }
}

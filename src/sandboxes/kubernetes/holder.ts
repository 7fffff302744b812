/**
 * Which process runs which sandbox: workloads name their holder, and each holder renews a lease while it has sandboxes. A holder whose
 * lease has expired is dead. Clocks of the gateway's processes may differ by less than the lease lasts.
 */
import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Cluster } from './cluster.ts';
import { MANAGED } from './objects.ts';
import { LEASES, type Lease } from './resources.ts';

const RENEW_MS = 10_000;
export const LEASE_MS = 45_000;
const NAME_BYTES = 8;

export class Holder {
  readonly name = `gatehouse-${randomBytes(NAME_BYTES).toString('hex')}`;
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #log: Log;
  #uses = 0;
  #renewal: Timer | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** Changes of the lease, one after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(cluster: Cluster, clock: Clock, log: Log) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether others cannot have taken over. */
  get isSure(): boolean {
    return this.#clock.monotonic() - this.#renewedAt < LEASE_MS;
  }

  /** Before a workload names this holder. */
  async begin(): Promise<void> {
    this.#uses += 1;
    if (this.#uses > 1 && this.isSure) return;
    try {
      await this.#inTurn(() => this.#write());
    } catch (error) {
      this.#uses -= 1;
      throw error;
    }
    this.#renewLater();
  }

  /** When a workload no longer does. */
  async end(): Promise<void> {
    this.#uses -= 1;
    await this.#inTurn(async () => {
      if (this.#uses > 0) return;
      this.#renewal?.cancel();
      this.#renewal = undefined;
      this.#renewedAt = Number.NEGATIVE_INFINITY;
      await this.#cluster.remove(LEASES, this.name);
    });
  }

  /** Whether another holder lives. */
  async lives(name: string): Promise<boolean> {
    const lease = await this.#cluster.find<Lease>(LEASES, name);
    return lease !== undefined && !this.#isExpired(lease);
  }

  /** Removes the leases of dead holders, whose sandboxes have ended. */
  async tidy(): Promise<void> {
    const dead = (await this.#cluster.list<Lease>(LEASES, { labels: MANAGED })).filter((each) => this.#isExpired(each));
    for (const { metadata } of dead) await this.#cluster.remove(LEASES, metadata.name);
  }

  #isExpired({ spec }: Lease): boolean {
    const renewedAt = Date.parse(spec?.renewTime ?? '');
    return !(this.#clock.now() - renewedAt < (spec?.leaseDurationSeconds ?? 0) * 1000);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const next = this.#last.then(work);
    this.#last = next.catch(() => {});
    return next;
  }

  async #write(): Promise<void> {
    const at = this.#clock.monotonic();
    const [label, value] = MANAGED.split('=') as [string, string];
    const spec = {
      holderIdentity: this.name,
      leaseDurationSeconds: LEASE_MS / 1000,
      // Microseconds are required.
      renewTime: new Date(this.#clock.now()).toISOString().replace('Z', '000Z'),
    };
    const known = await this.#cluster.find<Lease>(LEASES, this.name);
    const written =
      known === undefined
        ? await this.#cluster.create<Lease>(LEASES, { metadata: { name: this.name, labels: { [label]: value } }, spec })
        : await this.#cluster.replace<Lease>(LEASES, { ...known, spec });
    if (written !== undefined) this.#renewedAt = at;
  }

  #renewLater(): void {
    this.#renewal?.cancel();
    this.#renewal = this.#clock.timer(RENEW_MS, () => {
      this.#inTurn(async () => {
        if (this.#uses > 0) await this.#write();
      })
        .catch((error: unknown) => this.#log.warn('the lease of sandboxes cannot be renewed', { error }))
        .finally(() => {
          if (this.#uses > 0) this.#renewLater();
        });
    });
  }
}

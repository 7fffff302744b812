/**
 * Sandboxes as pods of a Kubernetes cluster, whose files are on a volume of their own. A workload object for each sandbox lasts until it
 * is removed; its pod exists while a process of the gateway holds the sandbox.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { KubernetesSandboxSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { type OpenDoor, trustBundle } from '../../egress-proxy/index.ts';
import type { DriverOptions, DriverParts, Examination, SandboxDriver, SandboxRecord } from '../driver.ts';
import { Cluster } from './cluster.ts';
import { examineCluster, type Found } from './examine.ts';
import { Holder, LEASE_MS } from './holder.ts';
import { KubernetesSandbox } from './kubernetes-sandbox.ts';
import {
  HOLDER,
  heldBy,
  idOf,
  MANAGED,
  nameOf,
  OWNER,
  SANDBOX_LABEL,
  type WorkloadKind,
  type WorkloadOptions,
} from './objects.ts';
import { podGone, podReady } from './pods.ts';
import { CLAIMS, type KubernetesObject, type Workload } from './resources.ts';

/** How often a change that conflicts with another one is retried. */
const MOST_CONFLICTS = 8;

/** A workload, and what kind it is. */
interface Located {
  kind: WorkloadKind;
  workload: Workload;
}

interface Connected {
  cluster: Cluster;
  holder: Holder;
}

export class KubernetesDriver implements SandboxDriver {
  readonly #parts: DriverParts;
  readonly #settings: KubernetesSandboxSettings;
  readonly #clock: Clock;
  /** Those that this process runs, or is starting. */
  readonly #running = new Set<string>();
  #connecting: Promise<Connected> | undefined;
  #found: Promise<Found> | undefined;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.#settings = parts.settings.kubernetes!;
    this.#clock = parts.clock;
  }

  async examine(): Promise<Examination> {
    let cluster: Cluster;
    try {
      ({ cluster } = await this.#connect());
    } catch (error) {
      const problem = { message: `Kubernetes cannot be used: ${(error as Error).message}`, remedy: REMEDY };
      return { driver: 'kubernetes', isolation: null, problems: [problem] };
    }
    // The cluster may change, so nothing of this is kept.
    this.#found = examineCluster(cluster, this.#settings);
    return (await this.#found).examination;
  }

  async create(options: DriverOptions): Promise<KubernetesSandbox> {
    const { cluster, holder } = await this.#connect();
    const { id } = options;
    const door = await this.#door();
    const { preferred, runtimeClass } = await this.#cluster(cluster);
    const wanted = { options, settings: this.#settings, runtimeClass, holder: holder.name };
    await holder.begin();
    const forget = async () => {
      this.#running.delete(id);
      await holder.end();
    };
    let isNew: boolean;
    try {
      isNew = await this.#take(wanted, preferred);
      this.#running.add(id);
    } catch (error) {
      await forget();
      throw error;
    }
    const { egressProxy } = this.#parts;
    const egressId = shortId(id);
    const release = async () => {
      if (options.network !== null) await egressProxy.close(egressId);
      await this.#turnOff(id, holder.name);
      await forget();
    };
    let sandbox: KubernetesSandbox | undefined;
    try {
      const pod = await podReady(cluster, nameOf(id), id);
      sandbox = new KubernetesSandbox({
        ...{ id, pod, cluster, limits: options.limits, programs: options.programs, door, clock: this.#clock },
        network: options.network === null ? null : await this.#way(egressId, options.network),
        assertHeld: () => this.#assertHeld(id),
        release,
      });
      await sandbox.prove();
      return sandbox;
    } catch (error) {
      const failed = (event: string) => (problem: unknown) => {
        this.#parts.log.error(event, { sandbox: id, error: problem });
      };
      await (sandbox?.stop() ?? release()).catch(async (problem: unknown) => {
        // The next start of this sandbox, or the next sweep, ends it.
        failed('a sandbox that cannot start was not stopped')(problem);
        await forget().catch(() => {});
      });
      // Nothing has run in it, and containers get a new id each time, so nothing else would remove it.
      if (isNew) await this.remove(id).catch(failed('a sandbox that cannot start was not removed'));
      throw error;
    }
  }

  async list(): Promise<SandboxRecord[]> {
    const others = new Map<string, Promise<boolean>>();
    const { holder } = await this.#connect();
    const runs = (by: string | undefined, id: string) => {
      if (by === undefined || by === holder.name) return this.#runs(by, id);
      const known = others.get(by) ?? holder.lives(by);
      others.set(by, known);
      return known;
    };
    const records = (await this.#all()).map(async ({ workload: { metadata } }) => {
      const id = idOf(metadata.name);
      const { [OWNER]: owner = '', [HOLDER]: by } = metadata.annotations ?? {};
      return id === undefined ? [] : [{ id, owner, running: await runs(by, id) }];
    });
    return (await Promise.all(records)).flat();
  }

  async remove(id: string): Promise<void> {
    const { cluster } = await this.#connect();
    const located = await this.#find(id);
    if (located !== undefined) {
      if (await this.#runs(located.workload.metadata.annotations?.[HOLDER], id)) throw busy(id);
      await cluster.remove(located.kind.resource, nameOf(id));
    }
    await this.#removeClaims(nameOf(id));
    await podGone(cluster, nameOf(id), id);
  }

  async sweep(): Promise<number> {
    const { cluster, holder } = await this.#connect();
    // Before the workloads: one that is created meanwhile is not mistaken for a remainder.
    const claims = await cluster.list(CLAIMS, { labels: MANAGED });
    let ended = 0;
    const workloads = await this.#all();
    for (const { workload } of workloads) {
      const { name, annotations = {} } = workload.metadata;
      const [id, by] = [idOf(name), annotations[HOLDER]];
      if (id === undefined || by === undefined || (await this.#runs(by, id))) continue;
      try {
        await this.#turnOff(id, by);
        ended += 1;
      } catch (error) {
        this.#parts.log.error('a sandbox of a gateway that was killed cannot be ended', { sandbox: id, error });
      }
    }
    const names = new Set(workloads.map(({ workload }) => workload.metadata.name));
    const orphans = claims.filter(({ metadata }) => !names.has(sandboxOf({ metadata })));
    for (const { metadata } of orphans) await cluster.remove(CLAIMS, metadata.name);
    await holder.tidy();
    return ended;
  }

  #connect(): Promise<Connected> {
    if (this.#connecting === undefined) {
      const { namespace, kubeconfig } = this.#settings;
      this.#connecting = Cluster.open(namespace, kubeconfig, this.#clock).then((cluster) => {
        return { cluster, holder: new Holder(cluster, this.#clock, this.#parts.log) };
      });
      this.#connecting.catch(() => {
        this.#connecting = undefined;
      });
    }
    return this.#connecting;
  }

  async #door(): Promise<OpenDoor> {
    try {
      return await this.#parts.egressProxy.door();
    } catch (error) {
      const message = `Sandboxes cannot reach the egress proxy of this gateway: ${(error as Error).message}.`;
      throw new GatewayError('server', message, { status: 503, cause: error });
    }
  }

  async #way(egressId: string, network: NonNullable<DriverOptions['network']>) {
    const { egressProxy, extraCa } = this.#parts;
    const key = await egressProxy.openRemote(egressId, network);
    return { key, bundle: trustBundle(network.certificate, extraCa) };
  }

  /** @throws GatewayError 503 if it isolates no sandboxes any more */
  async #cluster(cluster: Cluster): Promise<Found> {
    this.#found ??= examineCluster(cluster, this.#settings);
    const found = await this.#found;
    if (found.examination.isolation !== null) return found;
    this.#found = undefined;
    const reasons = found.examination.problems.map(({ message }) => message).join('; ');
    throw new GatewayError('server', `Kubernetes cannot isolate a sandbox: ${reasons}.`, { status: 503 });
  }

  /** Makes this process the holder, and starts the pod. @returns whether the workload is new @throws GatewayError 409 */
  async #take(wanted: WorkloadOptions, preferred: WorkloadKind): Promise<boolean> {
    const { cluster, holder } = await this.#connect();
    const { id } = wanted.options;
    for (let attempt = 0; attempt < MOST_CONFLICTS; attempt += 1) {
      const located = await this.#find(id);
      if (located === undefined) {
        if ((await cluster.create(preferred.resource, preferred.create(wanted))) !== undefined) return true;
        continue;
      }
      const { kind, workload } = located;
      if (await this.#runs(workload.metadata.annotations?.[HOLDER], id)) throw busy(id);
      // Remains of a dead process must not see the new pod.
      const taken = await cluster.replace(kind.resource, kind.turned(heldBy(workload, holder.name), false));
      if (taken === undefined) continue;
      await podGone(cluster, nameOf(id), id);
      await this.#change(id, holder.name, (one, its) => its.turned(its.update(one, wanted), true));
      return false;
    }
    throw busy(id);
  }

  /** Whether this holder runs the sandbox, as far as is known. */
  async #runs(by: string | undefined, id: string): Promise<boolean> {
    const { holder } = await this.#connect();
    if (by === undefined) return false;
    return by === holder.name ? this.#running.has(id) : holder.lives(by);
  }

  /** Ends the pod of a sandbox and gives it back, unless another process has taken it over. */
  async #turnOff(id: string, by: string): Promise<void> {
    const { cluster } = await this.#connect();
    const isOurs = await this.#change(id, by, (one, kind) => kind.turned(one, false));
    if (!isOurs) return;
    await podGone(cluster, nameOf(id), id);
    await this.#change(id, by, (one) => heldBy(one, undefined));
  }

  /** Changes a workload that this holder has. @returns false if it does not have it */
  async #change(
    id: string,
    by: string,
    change: (workload: Workload, kind: WorkloadKind) => Workload,
  ): Promise<boolean> {
    const { cluster } = await this.#connect();
    for (let attempt = 0; attempt < MOST_CONFLICTS; attempt += 1) {
      const located = await this.#find(id);
      if (located?.workload.metadata.annotations?.[HOLDER] !== by) return false;
      const { kind, workload } = located;
      if ((await cluster.replace(kind.resource, change(workload, kind))) !== undefined) return true;
    }
    const message = `Changes of the sandbox ${id} keep meeting changes by another process. Retry.`;
    throw new GatewayError('server', message, { status: 503, metadata: { retryable: true } });
  }

  async #assertHeld(id: string): Promise<void> {
    const { holder } = await this.#connect();
    if (holder.isSure) return;
    const located = await this.#find(id);
    if (located?.workload.metadata.annotations?.[HOLDER] === holder.name) return;
    const message = `The sandbox ${id} was taken over by another process, after this one was silent for ${LEASE_MS / 1000} s.`;
    throw new GatewayError('server', message, { status: 503, metadata: { retryable: true } });
  }

  async #find(id: string): Promise<Located | undefined> {
    const { cluster } = await this.#connect();
    const { kinds } = await this.#cluster(cluster);
    for (const kind of kinds) {
      const workload = await cluster.find<Workload>(kind.resource, nameOf(id));
      if (workload !== undefined) return { kind, workload };
    }
    return undefined;
  }

  async #all(): Promise<Located[]> {
    const { cluster } = await this.#connect();
    const { kinds } = await this.#cluster(cluster);
    const lists = kinds.map(async (kind) => {
      const workloads = await cluster.list<Workload>(kind.resource, { labels: MANAGED });
      return workloads.map((workload) => ({ kind, workload }));
    });
    return (await Promise.all(lists)).flat();
  }

  async #removeClaims(name: string): Promise<void> {
    const { cluster } = await this.#connect();
    const claims = await cluster.list(CLAIMS, { labels: `${SANDBOX_LABEL}=${name}` });
    for (const { metadata } of claims) await cluster.remove(CLAIMS, metadata.name);
  }
}

const REMEDY = 'see docs/guides/kubernetes.md';

function sandboxOf({ metadata }: KubernetesObject): string {
  return metadata.labels?.[SANDBOX_LABEL] ?? '';
}

/** An id in the form that the egress proxy accepts. */
function shortId(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** 409. */
function busy(id: string): GatewayError {
  return new GatewayError('invalid_request', `The sandbox ${id} is running in another process.`, { status: 409 });
}

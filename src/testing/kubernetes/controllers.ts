/** The controllers of a fake cluster: they make the pods and claims of stateful sets and of sandboxes, and run them. */
import { violations } from './admission.ts';
import type { Kubelet, RunningPod } from './kubelet.ts';
import type { AnyObject } from './schema.ts';
import type { Store } from './store.ts';

const POLL_MS = 20;

interface Workload {
  object: AnyObject;
  isOn: boolean;
  pod: string;
  template: { metadata: AnyObject['metadata']; spec: AnyObject['spec'] };
}

export class Controllers {
  readonly #store: Store;
  readonly #kubelet: Kubelet;
  readonly #images: ReadonlySet<string>;
  readonly #running = new Map<string, RunningPod>();
  readonly #ending = new Map<string, Promise<void>>();
  #isClosed = false;
  /** Why no pod is created, as a quota would. */
  refusal: string | undefined;

  constructor(store: Store, kubelet: Kubelet, images: readonly string[]) {
    this.#store = store;
    this.#kubelet = kubelet;
    this.#images = new Set(images);
  }

  running(pod: string): RunningPod | undefined {
    return this.#running.get(pod);
  }

  /** After every change. */
  reconcile(): void {
    const workloads = this.#workloads();
    for (const { object, isOn, pod, template } of workloads) {
      this.#claims(object);
      if (isOn && this.#store.get('pods', pod) === undefined) this.#create(object, pod, template);
      else if (!isOn) this.endPod(pod);
    }
    const wanted = new Set(workloads.map(({ pod }) => pod));
    for (const { metadata } of this.#store.list('pods')) if (!wanted.has(metadata.name)) this.endPod(metadata.name);
  }

  endPod(name: string): void {
    const pod = this.#store.get('pods', name);
    if (pod === undefined || this.#ending.has(name)) return;
    this.#store.put('pods', { ...pod, metadata: { ...pod.metadata, deletionTimestamp: new Date().toISOString() } });
    const running = this.#running.get(name);
    const ending = (async () => {
      await (running && this.#kubelet.end(running));
      this.#running.delete(name);
      this.#ending.delete(name);
      this.#store.remove('pods', name);
      if (!this.#isClosed) this.reconcile();
    })();
    this.#ending.set(name, ending);
  }

  /** What the garbage collector does: what a removed workload owned goes, too. */
  collect(owner: AnyObject): void {
    for (const claim of this.#store.list('persistentvolumeclaims')) {
      if (claim.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid))
        this.removeClaim(claim.metadata.name);
    }
    this.reconcile();
  }

  removeClaim(name: string): void {
    this.#store.remove('persistentvolumeclaims', name);
    this.#kubelet.removeVolume(name);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const name of this.#running.keys()) this.endPod(name);
    await Promise.all(this.#ending.values());
  }

  #workloads(): Workload[] {
    const sets = this.#store.list('statefulsets').map((object) => ({
      ...{
        object,
        isOn: object['spec'].replicas !== 0,
        pod: `${object.metadata.name}-0`,
        template: object['spec'].template,
      },
    }));
    const sandboxes = this.#store.list('sandboxes').map((object) => ({
      ...{ object, isOn: object['spec'].operatingMode !== 'Suspended', pod: object.metadata.name },
      template: object['spec'].podTemplate,
    }));
    return [...sets, ...sandboxes];
  }

  #claims({ kind, apiVersion, metadata, spec }: AnyObject): void {
    for (const template of spec.volumeClaimTemplates) {
      const name = claimName(kind, template.metadata.name, metadata.name);
      if (this.#store.get('persistentvolumeclaims', name) !== undefined) continue;
      this.#store.put('persistentvolumeclaims', {
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec: template.spec },
        metadata: {
          ...{ name, labels: template.metadata.labels },
          ownerReferences: [
            { apiVersion, kind, name: metadata.name, uid: metadata.uid! } as { name: string; uid: string },
          ],
        },
      });
    }
  }

  #create(owner: AnyObject, name: string, { metadata, spec }: Workload['template']): void {
    const wrong = violations(spec);
    if (wrong.length > 0)
      return void this.#warn(owner.metadata.name, 'FailedCreate', `violates PodSecurity: ${wrong.join(', ')}`);
    if (this.refusal !== undefined) return void this.#warn(owner.metadata.name, 'FailedCreate', this.refusal);
    const claims = owner['spec'].volumeClaimTemplates.map((template: AnyObject) => ({
      name: template.metadata.name,
      persistentVolumeClaim: { claimName: claimName(owner.kind, template.metadata.name, owner.metadata.name) },
    }));
    const pod = this.#store.put('pods', {
      ...{ apiVersion: 'v1', kind: 'Pod', status: { phase: 'Pending', conditions: [] } },
      metadata: { name, labels: metadata.labels ?? {} },
      spec: { ...spec, volumes: [...(spec.volumes ?? []), ...claims] },
    });
    if (!this.#images.has(spec.containers[0].image)) {
      const waiting = { reason: 'ErrImagePull', message: `cannot pull ${spec.containers[0].image}` };
      this.#status(name, { phase: 'Pending', containerStatuses: [{ restartCount: 0, state: { waiting } }] });
      return;
    }
    const running = this.#kubelet.start(pod);
    this.#running.set(name, running);
    void this.#probe(pod, running);
  }

  async #probe(pod: AnyObject, running: RunningPod): Promise<void> {
    const { name, uid } = pod.metadata;
    const containerStatuses = [{ name: 'sandbox', restartCount: 0, state: { running: {} } }];
    this.#status(name, { phase: 'Running', conditions: [], containerStatuses });
    while (!this.#isClosed && this.#store.get('pods', name)?.metadata.uid === uid) {
      if (running.process.exitCode !== null) {
        const waiting = { reason: 'CrashLoopBackOff', message: 'back-off restarting failed container' };
        this.#status(name, { phase: 'Running', containerStatuses: [{ restartCount: 1, state: { waiting } }] });
        return;
      }
      if (await this.#kubelet.probe(running, pod['spec'].containers[0].readinessProbe.exec.command)) {
        this.#status(name, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }], containerStatuses });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  #status(name: string, status: object): void {
    const pod = this.#store.get('pods', name);
    if (pod !== undefined) this.#store.put('pods', { ...pod, status });
  }

  #warn(name: string, reason: string, message: string): void {
    this.#store.put('events', {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: `${name}.${reason}` }, type: 'Warning', reason, message },
      involvedObject: { name },
    });
  }
}

function claimName(kind: string, template: string, workload: string): string {
  return kind === 'StatefulSet' ? `${template}-${workload}-0` : `${template}-${workload}`;
}

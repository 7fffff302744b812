/** Sandboxes of the Kubernetes driver in a fake cluster with the manifests of `deploy/kubernetes`. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { type Clock, systemClock } from '../../base/clock.ts';
import { DEFAULT_SANDBOXES, type KubernetesSandboxSettings, type SandboxesSettings } from '../../base/config.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { Blobs } from '../../blobs/index.ts';
import { EgressProxy } from '../../egress-proxy/index.ts';
import { remoteDoor, Sandboxes } from '../../sandboxes/index.ts';
import { FakeCluster, type FakeClusterOptions } from './cluster.ts';
import type { AnyObject } from './schema.ts';

const MANIFESTS = path.join(import.meta.dirname, '..', '..', '..', 'deploy', 'kubernetes');
const NAMESPACE = 'gatehouse-sandboxes';
const IMAGE = 'registry.example.com/gatehouse-sandbox:0.1.0';
/** Only what the network of the fake cluster lets through reaches it from a pod. */
const HOST = '127.0.0.9';

/** For the `skip` of tests. */
export const skip =
  spawnSync('bwrap', ['--unshare-user', '--unshare-net', '--ro-bind', '/', '/', 'true']).status === 0
    ? false
    : 'the pods of the fake cluster need bubblewrap';

interface Place {
  after(run: () => unknown): void;
}

/** All objects of the manifests. */
export function manifests(): AnyObject[] {
  const files = readdirSync(MANIFESTS).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');
  return files.flatMap((name) =>
    parseAllDocuments(readFileSync(path.join(MANIFESTS, name), 'utf8')).map((each) => each.toJS() as AnyObject),
  );
}

/** Those that the API of the fake cluster serves, or decides by. */
export function clusterObjects(): AnyObject[] {
  const isServed = ({ kind, metadata: { namespace } }: AnyObject) =>
    ['Role', 'ClusterRole'].includes(kind) || (kind === 'NetworkPolicy' && namespace === NAMESPACE);
  return manifests().filter(isServed);
}

export async function startCluster(t: Place, folder: string, changes: Partial<FakeClusterOptions> = {}) {
  const cluster = await FakeCluster.start({
    ...{ folder, objects: clusterObjects(), namespace: NAMESPACE, images: [IMAGE], hasSandboxes: false },
    gateway: { host: HOST, labels: { 'app.kubernetes.io/name': 'gatehouse' } },
    ...changes,
  });
  t.after(() => cluster.close());
  return cluster;
}

interface OpenOptions {
  /** Of the gateway's process. */
  folder: string;
  kubernetes?: Partial<KubernetesSandboxSettings>;
  settings?: Partial<SandboxesSettings>;
  blobs?: Blobs;
  clock?: Clock;
  log?: Log;
  /** Of the egress proxy. */
  entry?: string;
  extraCa?: string;
  /** Of another process, to start none. */
  egressProxy?: EgressProxy;
}

/** The sandboxes of one process of the gateway. */
export function openKubernetes(t: Place, cluster: Pick<FakeCluster, 'kubeconfig'>, options: OpenOptions) {
  const { folder, kubernetes, blobs, clock = systemClock, log = silentLog, entry, extraCa = null } = options;
  const settings: SandboxesSettings = {
    ...{ ...DEFAULT_SANDBOXES, driver: 'kubernetes', ...options.settings },
    kubernetes: {
      ...{ namespace: NAMESPACE, image: IMAGE, storageClass: null, runtimeClass: null, egressPort: 3129 },
      ...{ egressHost: HOST, kubeconfig: cluster.kubeconfig, ...kubernetes },
    },
  };
  const shared = { clock, log };
  const own = new EgressProxy({
    ...{ folder: path.join(folder, 'egress'), settings: () => ({ networks: [], extraCa }), ...shared },
    ...{ door: remoteDoor(settings)!, ...(entry !== undefined && { entry }) },
  });
  const egressProxy = options.egressProxy ?? own;
  const parts = { settings, dataDir: folder, extraCa, egressProxy, blobs: blobs as Blobs, ...shared };
  const sandboxes = new Sandboxes(parts);
  t.after(async () => {
    await sandboxes.close();
    await own.end();
  });
  return { sandboxes, egressProxy };
}

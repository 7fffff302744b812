/** The objects of a sandbox in the cluster: a workload with a claim for its files, as a `Sandbox` or a `StatefulSet`. */
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import type { KubernetesSandboxSettings } from '../../base/config.ts';
import type { DriverOptions } from '../driver.ts';
import { HOME, WORKSPACE } from '../sandbox.ts';
import { type Resource, SANDBOXES, STATEFUL_SETS, type Workload } from './resources.ts';

export const CONTAINER = 'sandbox';
/** Of the gateway's own files in the pod. */
export const OWN_FOLDER = '/run/gatehouse';

export const MANAGED = 'app.kubernetes.io/managed-by=gatehouse';
/** Label: the name of the workload. */
export const SANDBOX_LABEL = 'gatehouse/sandbox';
/** Label, which network policies select: `egress` or `none`. */
export const NETWORK_LABEL = 'gatehouse/network';
/** Annotation. */
export const OWNER = 'gatehouse/owner';
/** Annotation: the process that runs it. Its lease has this name. */
export const HOLDER = 'gatehouse/holder';

const [UID, GID] = [1000, 1000];
const OWN_MB = 8;
const GRACE_SECONDS = 1;
const PROBE_SECONDS = 1;
/** What the pod is promised; it can use as much as its limits allow. */
const REQUESTED_CPU = '50m';

/** @returns the name of the workload: ids may end with a dash, names may not */
export function nameOf(id: string): string {
  return `${id}-sandbox`;
}

/** @returns undefined for a name of another origin */
export function idOf(name: string): string | undefined {
  return /^([a-z][a-z0-9-]{0,39})-sandbox$/.exec(name)?.[1];
}

export interface WorkloadOptions {
  options: DriverOptions;
  settings: KubernetesSandboxSettings;
  runtimeClass: string | null;
  holder: string;
}

/** One of the two kinds. */
export interface WorkloadKind {
  resource: Resource;
  create(options: WorkloadOptions): Workload;
  /** Without its claims, which cannot be changed. */
  update(workload: Workload, options: WorkloadOptions): Workload;
  isOn(workload: Workload): boolean;
  turned(workload: Workload, isOn: boolean): Workload;
}

export const SANDBOX_KIND: WorkloadKind = {
  resource: SANDBOXES,
  create: (options) => ({
    metadata: metadataOf(options),
    spec: {
      ...{ operatingMode: 'Running', podTemplate: templateOf(options) },
      ...{ service: false, volumeClaimTemplates: [claimOf(options)] },
    } as Workload['spec'],
  }),
  update: (workload, options) => changed(workload, options, { podTemplate: templateOf(options) }),
  isOn: ({ spec }) => spec.operatingMode !== 'Suspended',
  turned: (workload, isOn) => ({
    ...workload,
    spec: { ...workload.spec, operatingMode: isOn ? 'Running' : 'Suspended' },
  }),
};

export const STATEFUL_SET_KIND: WorkloadKind = {
  resource: STATEFUL_SETS,
  create: (options) => ({
    metadata: metadataOf(options),
    spec: {
      ...{ replicas: 1, serviceName: nameOf(options.options.id), podManagementPolicy: 'Parallel' },
      selector: { matchLabels: { [SANDBOX_LABEL]: nameOf(options.options.id) } },
      updateStrategy: { type: 'OnDelete' },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' },
      ...{ template: templateOf(options), volumeClaimTemplates: [claimOf(options)] },
    } as Workload['spec'],
  }),
  update: (workload, options) => changed(workload, options, { template: templateOf(options) }),
  isOn: ({ spec }) => spec.replicas !== 0,
  turned: (workload, isOn) => ({ ...workload, spec: { ...workload.spec, replicas: isOn ? 1 : 0 } }),
};

/** @param holder undefined: nobody runs it */
export function heldBy(workload: Workload, holder: string | undefined, owner?: string): Workload {
  const { [HOLDER]: _, ...annotations } = workload.metadata.annotations ?? {};
  const metadata = {
    ...workload.metadata,
    annotations: {
      ...annotations,
      ...(owner === undefined ? {} : { [OWNER]: owner }),
      ...(holder === undefined ? {} : { [HOLDER]: holder }),
    },
  };
  return { ...workload, metadata };
}

function metadataOf({ options: { id, owner }, holder }: WorkloadOptions): Workload['metadata'] {
  return { name: nameOf(id), labels: labelsOf(id), annotations: { [OWNER]: owner, [HOLDER]: holder } };
}

function labelsOf(id: string): Record<string, string> {
  const [name, value = ''] = MANAGED.split('=');
  return { [name!]: value, [SANDBOX_LABEL]: nameOf(id) };
}

function changed(workload: Workload, { options }: WorkloadOptions, parts: object): Workload {
  const next = { ...workload, spec: { ...workload.spec, ...parts } };
  return heldBy(next, workload.metadata.annotations?.[HOLDER], options.owner);
}

function claimOf({ options: { id, limits }, settings: { storageClass } }: WorkloadOptions) {
  return {
    metadata: { name: 'files', labels: labelsOf(id) },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: String(limits.diskBytes) } },
      ...(storageClass === null ? {} : { storageClassName: storageClass }),
    },
  };
}

function templateOf({ options, settings: { image }, runtimeClass }: WorkloadOptions) {
  const { id, limits, network } = options;
  const labels = { ...labelsOf(id), [NETWORK_LABEL]: network === null ? 'none' : 'egress' };
  const scratchBytes = String(limits.diskBytes);
  return {
    metadata: { labels },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // What commands leave is reaped by the first process of the pod.
      shareProcessNamespace: true,
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: GRACE_SECONDS,
      // Names are resolved by the egress proxy.
      ...{ dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } },
      ...(runtimeClass === null ? {} : { runtimeClassName: runtimeClass }),
      securityContext: {
        ...{ runAsNonRoot: true, runAsUser: UID, runAsGroup: GID, fsGroup: GID },
        ...{ fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } },
      },
      containers: [
        {
          ...{ name: CONTAINER, image, imagePullPolicy: 'IfNotPresent', command: start(), workingDir: '/tmp' },
          resources: {
            requests: { cpu: REQUESTED_CPU, memory: String(limits.memoryBytes) },
            limits: {
              ...{ cpu: String(limits.cpus), memory: String(limits.memoryBytes) },
              'ephemeral-storage': scratchBytes,
            },
          },
          securityContext: {
            ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true },
            ...{ runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
          },
          readinessProbe: { exec: { command: ['test', '-f', `${OWN_FOLDER}/ready`] }, periodSeconds: PROBE_SECONDS },
          volumeMounts: [
            { name: 'files', mountPath: WORKSPACE, subPath: 'workspace' },
            { name: 'files', mountPath: HOME, subPath: 'home' },
            { name: 'scratch', mountPath: '/tmp' },
            { name: 'own', mountPath: OWN_FOLDER },
          ],
        },
      ],
      volumes: [
        { name: 'scratch', emptyDir: { sizeLimit: scratchBytes } },
        { name: 'own', emptyDir: { medium: 'Memory', sizeLimit: `${OWN_MB}Mi` } },
      ],
    },
  };
}

/** In base64, because Kubernetes replaces some texts in commands. */
function start(): string[] {
  const script = `umask 022; printf %s "$0" | base64 -d > ${POD_FILE} && exec node ${POD_MEMORY.join(' ')} ${POD_FILE} init`;
  return ['sh', '-c', script, podSource.toString('base64')];
}

/** Of the gateway's own processes in the pod, which count towards its limit. */
export const POD_MEMORY = ['--max-old-space-size=32', '--max-semi-space-size=1'];
/** The gateway's file in the pod. */
export const POD_FILE = `${OWN_FOLDER}/pod.mjs`;

const podSource = podScript();

/** Bundled, it is next to the chunk of this module. */
function podScript(): Buffer {
  if (!import.meta.url.endsWith('.ts')) return readFileSync(new URL('./sandbox-pod.js', import.meta.url));
  return Buffer.from(stripTypeScriptTypes(readFileSync(new URL('./pod.ts', import.meta.url), 'utf8')));
}

/** The kinds of objects of the Kubernetes API that the driver works with, as far as it reads them. */

interface ObjectMeta {
  name: string;
  uid?: string;
  resourceVersion?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** How a kind is addressed. */
export interface Resource {
  /** Empty: the core group. */
  group: string;
  version: string;
  kind: string;
  plural: string;
}

export interface Pod extends KubernetesObject {
  status?: {
    phase?: string;
    conditions?: { type: string; status: string; message?: string }[];
    containerStatuses?: {
      restartCount?: number;
      state?: { waiting?: { reason?: string; message?: string } };
      lastState?: { terminated?: { reason?: string } };
    }[];
  };
}

export interface Lease extends KubernetesObject {
  spec?: { renewTime?: string; leaseDurationSeconds?: number };
}

export interface NetworkPolicy extends KubernetesObject {
  spec?: { podSelector?: { matchLabels?: Record<string, string>; matchExpressions?: unknown[] } } & {
    policyTypes?: string[];
    ingress?: unknown[];
    egress?: unknown[];
  };
}

export interface Event extends KubernetesObject {
  type?: string;
  reason?: string;
  message?: string;
}

export interface RuntimeClass extends KubernetesObject {
  handler?: string;
}

/** What runs the pod of a sandbox: one of two kinds. */
export interface Workload extends KubernetesObject {
  spec: { replicas?: number; operatingMode?: string };
}

const named = (group: string, version: string, kind: string, plural: string): Resource => ({
  group,
  version,
  kind,
  plural,
});

export const SANDBOXES = named('agents.x-k8s.io', 'v1beta1', 'Sandbox', 'sandboxes');
export const STATEFUL_SETS = named('apps', 'v1', 'StatefulSet', 'statefulsets');
export const PODS = named('', 'v1', 'Pod', 'pods');
export const CLAIMS = named('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims');
export const EVENTS = named('', 'v1', 'Event', 'events');
export const LEASES = named('coordination.k8s.io', 'v1', 'Lease', 'leases');
export const NETWORK_POLICIES = named('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies');
export const RUNTIME_CLASSES = named('node.k8s.io', 'v1', 'RuntimeClass', 'runtimeclasses');

export function apiVersionOf({ group, version }: Resource): string {
  return group === '' ? version : `${group}/${version}`;
}

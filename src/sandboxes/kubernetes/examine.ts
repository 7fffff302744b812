/** Whether a cluster can isolate sandboxes, and what this gateway may do there. */
import type { KubernetesSandboxSettings } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import type { DriverProblem, Examination } from '../driver.ts';
import { type Cluster, isUnreachable } from './cluster.ts';
import { NETWORK_LABEL, SANDBOX_KIND, STATEFUL_SET_KIND, type WorkloadKind } from './objects.ts';
import {
  CLAIMS,
  EVENTS,
  LEASES,
  NETWORK_POLICIES,
  type NetworkPolicy,
  PODS,
  type Resource,
  RUNTIME_CLASSES,
  type RuntimeClass,
  SANDBOXES,
} from './resources.ts';

export interface Found {
  examination: Examination;
  /** Those that workloads may have. */
  kinds: readonly WorkloadKind[];
  /** That of new ones. */
  preferred: WorkloadKind;
  runtimeClass: string | null;
}

const MANIFESTS = 'apply deploy/kubernetes (docs/guides/kubernetes.md)';
const GVISOR = 'runsc';

type Right = readonly [resource: Resource, verbs: readonly string[], subresource?: string];

/** All that the driver does in the namespace of the sandboxes. */
const RIGHTS: readonly Right[] = [
  [PODS, ['get', 'list', 'watch']],
  // Which of the two a WebSocket needs depends on the version of Kubernetes.
  [PODS, ['create', 'get'], 'exec'],
  [CLAIMS, ['list', 'delete']],
  [LEASES, ['get', 'list', 'create', 'update', 'delete']],
  [NETWORK_POLICIES, ['list']],
  [EVENTS, ['list']],
];
const WORKLOAD_VERBS = ['get', 'list', 'create', 'update', 'delete'] as const;

export async function examineCluster(cluster: Cluster, settings: KubernetesSandboxSettings): Promise<Found> {
  const kinds: WorkloadKind[] = [STATEFUL_SET_KIND];
  const found: Omit<Found, 'examination'> = {
    kinds,
    preferred: STATEFUL_SET_KIND,
    runtimeClass: settings.runtimeClass,
  };
  const unusable = (problems: readonly DriverProblem[], mayChange = false): Found => {
    return { ...found, examination: { driver: 'kubernetes', isolation: null, problems, mayChange } };
  };
  try {
    const version = await cluster.version();
    if (await cluster.serves(SANDBOXES)) kinds.unshift(SANDBOX_KIND);
    found.preferred = kinds[0]!;
    const missing = await missingRights(cluster, kinds);
    if (missing.length > 0) {
      const message = `the gateway may not ${missing.join(', ')} in the namespace ${cluster.namespace}`;
      return unusable([{ message, remedy: MANIFESTS }], true);
    }
    const unprotected = policyProblem(await cluster.list<NetworkPolicy>(NETWORK_POLICIES), cluster.namespace);
    if (unprotected !== undefined) return unusable([unprotected], true);
    const { name, problems } = await runtimeOf(cluster, settings.runtimeClass);
    found.runtimeClass = name;
    const objects = found.preferred === SANDBOX_KIND ? 'Sandbox objects' : 'stateful sets';
    const kernel = name === null ? 'the kernel of the node' : `runtime class ${name}`;
    const isolation = `kubernetes ${version}: a pod for each sandbox (${objects}), network policies, ${kernel}`;
    return { ...found, examination: { driver: 'kubernetes', isolation, problems } };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return unusable([{ message: error.message.replace(/\.$/, ''), remedy: MANIFESTS }], isUnreachable(error));
  }
}

async function missingRights(cluster: Cluster, kinds: readonly WorkloadKind[]): Promise<string[]> {
  const rights = [...kinds.map(({ resource }): Right => [resource, WORKLOAD_VERBS]), ...RIGHTS];
  const asked = rights.flatMap(([resource, verbs, subresource]) => {
    return verbs.map(async (verb) => {
      const allowed = await cluster.allows(verb, resource, subresource);
      return allowed ? [] : [`${verb} ${resource.plural}${subresource === undefined ? '' : `/${subresource}`}`];
    });
  });
  return (await Promise.all(asked)).flat();
}

/** Policies add up, so one must forbid everything to every pod. What others allow is tried out in each pod. */
function policyProblem(policies: readonly NetworkPolicy[], namespace: string): DriverProblem | undefined {
  const selects = ({ spec }: NetworkPolicy) => ({ labels: spec?.podSelector?.matchLabels ?? {}, spec });
  const forbids = policies.map(selects).some(({ labels, spec }) => {
    const all = Object.keys(labels).length === 0 && (spec?.podSelector?.matchExpressions ?? []).length === 0;
    const both = ['Ingress', 'Egress'].every((type) => spec?.policyTypes?.includes(type));
    return all && both && (spec?.ingress ?? []).length === 0 && (spec?.egress ?? []).length === 0;
  });
  if (!forbids) {
    return { message: `no network policy forbids all traffic in the namespace ${namespace}`, remedy: MANIFESTS };
  }
  const allows = policies.map(selects).some(({ labels, spec }) => {
    return labels[NETWORK_LABEL] === 'egress' && (spec?.egress ?? []).length > 0;
  });
  if (allows) return undefined;
  const message = `no network policy in the namespace ${namespace} allows ${NETWORK_LABEL}=egress to reach the gateway`;
  return { message, remedy: MANIFESTS };
}

/** @param wanted of the settings @throws GatewayError 503 if it does not exist */
async function runtimeOf(cluster: Cluster, wanted: string | null) {
  const shared: DriverProblem = {
    message: 'sandboxes share the kernel of their node, because there is no runtime class of gVisor',
    remedy: 'install gVisor on the nodes and make a runtime class with the handler runsc',
  };
  let classes: RuntimeClass[];
  try {
    classes = await cluster.listAll<RuntimeClass>(RUNTIME_CLASSES);
  } catch (error) {
    if (isUnreachable(error) || wanted === null) throw error;
    return { name: wanted, problems: [] };
  }
  if (wanted !== null && !classes.some(({ metadata }) => metadata.name === wanted)) {
    throw new GatewayError('server', `There is no runtime class ${wanted} (sandboxes.kubernetes.runtime_class).`);
  }
  const name = wanted ?? classes.find(({ handler }) => handler === GVISOR)?.metadata.name ?? null;
  return { name, problems: name === null ? [shared] : [] };
}

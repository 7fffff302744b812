/** Waits for pods of sandboxes. */
import { GatewayError } from '../../base/errors.ts';
import type { Cluster } from './cluster.ts';
import { SANDBOX_LABEL } from './objects.ts';
import { EVENTS, type Event, PODS, type Pod } from './resources.ts';

const READY_MS = 180_000;
const GONE_MS = 60_000;
/** Of a container that will not start by waiting. */
const HOPELESS = [
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'CreateContainerConfigError',
  'CrashLoopBackOff',
];

/** @returns the name of the pod @throws GatewayError 503 with what Kubernetes says, if it does not start */
export async function podReady(cluster: Cluster, name: string, id: string): Promise<string> {
  const selection = { labels: `${SANDBOX_LABEL}=${name}` };
  let last: Pod | undefined;
  const ready = await cluster.follow<Pod, string>(PODS, selection, READY_MS, (pods) => {
    const [pod] = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    if (pod === undefined) return undefined;
    last = pod;
    const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting;
    if (HOPELESS.includes(waiting?.reason ?? '')) {
      throw failed(id, `its container does not start: ${waiting!.reason}: ${waiting!.message ?? ''}`);
    }
    return conditionOf(pod, 'Ready')?.status === 'True' ? pod.metadata.name : undefined;
  });
  if (ready !== undefined) return ready;
  const seconds = `its pod was not ready within ${READY_MS / 1000} s`;
  const unscheduled = last && conditionOf(last, 'PodScheduled');
  if (unscheduled?.status === 'False') throw failed(id, `${seconds}: ${unscheduled.message ?? 'it is not scheduled'}`);
  throw failed(id, `${seconds}: ${await lastWarning(cluster, last?.metadata.name ?? name)}`);
}

/** Resolves when no pod is left. @throws GatewayError 503 if it does not end */
export async function podGone(cluster: Cluster, name: string, id: string): Promise<void> {
  const selection = { labels: `${SANDBOX_LABEL}=${name}` };
  const gone = await cluster.follow<Pod, true>(PODS, selection, GONE_MS, (pods) => pods.length === 0 || undefined);
  if (gone) return;
  const message = `The pod of the sandbox ${id} did not end within ${GONE_MS / 1000} s. Its node may be lost.`;
  throw new GatewayError('server', message, { status: 503, metadata: { retryable: true } });
}

function conditionOf({ status }: Pod, type: string) {
  return status?.conditions?.find((each) => each.type === type);
}

async function lastWarning(cluster: Cluster, name: string): Promise<string> {
  const events = await cluster.list<Event>(EVENTS, { fields: `involvedObject.name=${name}` }).catch(() => []);
  const warning = events.filter(({ type }) => type === 'Warning').at(-1);
  return warning === undefined ? 'Kubernetes gives no reason' : `${warning.reason}: ${warning.message}`;
}

function failed(id: string, why: string): GatewayError {
  const message = `The sandbox ${id} cannot start: ${why.slice(0, 500)}`;
  return new GatewayError('server', message, { status: 503, metadata: { retryable: true } });
}
